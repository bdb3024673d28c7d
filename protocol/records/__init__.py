"""Record batches (magic 2) and message sets (magic 0 and 1): read, validate, build, convert.

`batch` reads headers and records, `validate` is what a broker does to what a producer sent, `build` makes batches,
`convert` takes stored batches down to what an old consumer can read, `legacy` is message sets, `compression` the five
codecs. Bytes stay bytes: nothing here keeps state, and the usual produce request is checked and stamped in place.
"""
