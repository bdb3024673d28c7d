"""The audit: what a real client does when the broker fails, measured, and where it departs from the KIPs.

A probe (probes/) makes the broker fail in one way while a subject (subjects/) works against it; what the journal and
the subject told of it is an Observation. The observer (observer/) makes sequences of attempts of that, and the judge
(judge/) a verdict for each statement of a KIP. Results are told by report/.

Observer and judge are pure functions of an observation: they import no broker, so that a pipeline runs them elsewhere.
"""
