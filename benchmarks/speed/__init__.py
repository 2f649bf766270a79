"""Parts of the speed benchmark; `benchmarks/bench.py` runs them.

Every part has `run(options)`, which returns records: flat dictionaries that go to results.json as
they are. `page.py` and `plots.py` use only these records.
"""
