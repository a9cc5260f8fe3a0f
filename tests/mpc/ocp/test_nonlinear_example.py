"""The example of trajectory optimisation does what its first lines say."""

from support.examples import example


def test_a_pendulum_swings_up_on_a_four_bar_within_the_motors_limit(capsys):
    found = example(25)["main"]()
    assert found["solved"]
    assert found["turned"] > 3.0
    assert abs(found["lean"]) < 0.02
    assert 2.999 < found["torque"] < 3.0 + 1e-6
    assert found["gap"] < 1e-8
    assert found["error"] < 1e-3
    assert "solved: gap" in capsys.readouterr().out
