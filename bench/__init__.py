"""Benchmark suites: each module has `run(quick=False)` and prints nothing.

`run` returns `{"rows": [{"model", "quantity", "ours", "peer", "peer_time", "ratio"}, ...]}`:
`ours` and `peer_time` are medians in seconds (`batch`: the best of the rounds), measured side by
side in one run, and `ratio` is `ours / peer_time`. A peer that is not installed is named in `peer`
with `peer_time` None.
"""
