"""The example of trajectory optimisation does what its first lines say."""

from support.examples import example


def test_a_pendulum_swings_up_on_a_four_bar_within_the_motors_limit(capsys):
    actual = example(25)["main"]()
    assert actual["solved"]
    assert actual["turned"] > 3.0
    assert abs(actual["lean"]) < 0.02
    assert 2.999 < actual["torque"] < 3.0 + 1e-6
    assert actual["gap"] < 1e-8
    assert actual["error"] < 1e-3
    assert "solved: gap" in capsys.readouterr().out
