"""Record batches (magic 2) and message sets (magic 0 and 1): read, validate, build, convert.

- `batch`: headers and checksums of batches; `record`: the records inside.
- `validate`: a broker's checks of produced records; the usual batch is checked and stamped in place.
- `build`: new batches; `convert`: down-conversion for old consumers.
- `legacy`: message sets; `compression`: the five codecs.
"""
