"""The benchmark of the laws times every case once, and prints its table."""

from mbcasadi.benchmarks import laws
from mbcasadi.benchmarks.law_cases import CASES, inputs, system_of


def test_one_case_gives_a_row_its_size_and_a_line_of_the_table(monkeypatch):
    monkeypatch.setattr(laws, "CASES", CASES[:1])
    monkeypatch.setattr(laws, "FLAGS", ("-O0",))
    results = laws.run(quick=True)
    (row,) = results["rows"]
    assert set(row) == {"model", "quantity", "ours", "peer", "peer_time", "ratio"}
    assert 0 < row["ours"] < 1e-3
    assert row["quantity"] == CASES[0].law
    key = f"{row['model']}: {row['quantity']}"
    assert results["lines"][key] > results["operations"][key] > 100
    text = laws.table({"rows": results["rows"], "settings": {"laws": results}})
    assert text.splitlines()[-1].startswith(f"| `{CASES[0].law}` | {row['model']} |")


def test_a_record_has_closed_states_and_all_inputs():
    law = CASES[0].build(system_of(CASES[0].model))
    values = inputs(law, 20)
    assert list(values) == law.function.name_in()[:-1]
    phi = law.system.constraint.map(values["q"].shape[1])(values["q"]).full()
    assert abs(phi).max() < 1e-9
