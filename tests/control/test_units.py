"""One mechanism in several systems of units: everything that has a meaning agrees.

Lengths, masses and times are converted, and with them state, reference, gains, weights and limits.
The linkage has a pin that is said twice, so rows are redundant and loads are shared.
"""

from functools import cache, partial

import casadi as ca
import numpy as np
import pytest
from support.unit_systems import (
    KINDS,
    OTHERS,
    SI,
    Units,
    assert_agrees,
    controls_of,
    forces_of,
    linkage,
    rates_of,
    slider_crank,
    state_in,
)

import mbcasadi as mb
import mbcasadi.errors as err
from mbcasadi import estimation
from mbcasadi.control import (
    ActuatorLimits,
    DisturbanceObserver,
    ForceFeedback,
    InverseDynamicsQP,
    JointLimits,
    LawOptions,
    LoadSharing,
    LoopForceLimits,
    LoopForceWeights,
    PostureTask,
    SoftLimit,
    laws,
    regulators,
)

AGREE = 1e-8  # relative; factorisations of a condition up to 1e6 in other roundings
TICKS, OVER_TICKS = 5, 1e-7  # of the same factors
ITERATED = 1e-7  # relative; Riccati equations and Newton's steps amplify rounding
PERIOD = 2e-3  # s
THETA, NAMES = ("cart", "crank"), ("cart", "crank", "rod", "slider")
CRANK_KINDS = ("rad", "rad", "m")  # of the slider-crank by equations


def laws_in(u):
    """Return a builder of laws by name, with a period in the units of time."""
    timed = LawOptions(period=1e-3 * u.s)
    return lambda name, *given, **own: getattr(laws, name)(*given, **{"options": timed} | own)


def posture(u):
    return PostureTask(kp=100.0 / u.s**2, weight=1.0 / rates_of(u) ** 2)


def springs(u, stiffness="stiffness", damping="damping"):
    """Return stiffness and damping of each coordinate."""
    per_force = forces_of(u) / u.of(KINDS)
    return {stiffness: 30.0 * per_force, damping: 3.0 * per_force * u.s}


def gains(u):
    return springs(u, "kp", "kd")


def motion(u):
    return {"kp": 100.0 / u.s**2, "kd": 20.0 / u.s}


def rates(u):
    return {"kp": 10.0 / u.s, "kd": 20.0 / u.s}


def theta(system):
    return laws.joint_coordinates(system, THETA)


def servo(system, u):
    """Return rows of cart and crank in their own units, and what stabilises them."""
    q, v, y = ca.SX.sym("q", 4), ca.SX.sym("v", 4), ca.SX.sym("y", 2)
    return laws.servo_rows(system, q, v, phi=q[:2] - y, y=y)


def stable(u):
    return {"baumgarte": mb.Baumgarte(10.0 / u.s, 10.0 / u.s)}


def force_loop(u, rows=None):
    return laws.ForceGains(0.5, 40.0 / u.s, rows=rows)


def at_rest_below(speed):
    return laws.DryFriction(rest_speed=speed)


PINS = ("pin.0", "pin.2")


def masses(u):
    return {"inertia": 0.4 * u.kg * (u.m / u.of(KINDS)) ** 2}


def limited(s, u):
    limits = np.outer(controls_of(u, s.nu == 5), [-2.0, 2.0])
    options = LawOptions(period=1e-3 * u.s, ctrl_limits=limits)
    return laws.within_limits(laws.computed_torque(s, posture(u), options=options))


LAWS = {  # name of the law, arguments, options
    "computed_torque": lambda _s, u: ((posture(u),), {"damping": 2.0 / u.s}),
    "qr_inverse_dynamics": lambda _s, u: ((posture(u),), {}),
    "gravity_compensated_pd": lambda _s, u: ((posture(u),), springs(u)),
    "impedance_control": lambda _s, u: ((posture(u),), springs(u)),
    "impedance_control: inertia": lambda _s, u: ((posture(u),), springs(u) | masses(u)),
    "projected_inverse_dynamics": lambda s, u: ((theta(s),), motion(u)),
    "passive_joint_control": lambda s, u: ((theta(s),), motion(u)),
    "passive_joint_control: chosen": lambda _s, u: ((), motion(u)),
    "constraint_force_control": lambda _s, u: ((force_loop(u),), {}),
    "constraint_force_control: rows": lambda _s, u: ((force_loop(u, PINS),), {}),
    "hybrid_motion_force_control": lambda s, u: ((theta(s), force_loop(u)), motion(u)),
    "dependent_regulation": lambda _s, u: ((), gains(u) | {"friction": at_rest_below(0.01 / u.s)}),
    "dependent_tracking": lambda _s, u: ((), {"kp": 10.0 / u.s, "kd": np.diag(gains(u)["kd"])}),
    "servo_control": lambda s, u: ((servo(s, u),), stable(u)),
    "servo_control: figures": lambda s, u: ((servo(s, u),), stable(u) | {"form": "figures"}),
    "quasi_velocity_tracking": lambda s, u: ((theta(s),), rates(u)),
    "quasi_velocity_tracking: force": lambda s, u: ((theta(s),), rates(u) | {"least": "force"}),
    "quasi_velocity_force": lambda s, u: ((theta(s),), rates(u) | {"gains": force_loop(u)}),
    "quasi_velocity_force: rows": lambda s, u: (
        (theta(s),), rates(u) | {"gains": force_loop(u, PINS), "least": "force"},
    ),
    "within_limits": None,
}  # fmt: skip
DRIVEN = ("projected_inverse_dynamics", "constraint_force_control", "hybrid_motion_force_control")


def reference(law, u, chosen=THETA):
    """Return random references in units u, each slice by its name and size; two of θ or of rows."""
    q, pose, rate = state_in(u)[0], u.of(KINDS), rates_of(u)
    rng, values = np.random.default_rng(0), np.zeros(law.function.numel_in("ref"))
    joints = {4: slice(None), 2: [NAMES.index(n) for n in chosen]}
    for name, place in law.reference_slices.items():
        count = place.stop - place.start
        noise, key, own = 0.3 * rng.standard_normal(count), name.split(".")[-1], joints.get(count)
        if key in ("q", "y"):
            values[place] = q[own] + pose[own] * noise
        elif key in ("v", "ydot", "a", "yddot"):
            values[place] = rate[own] / (u.s if key in ("a", "yddot") else 1.0) * noise
        elif key == "s":
            values[place] = controls_of(u, count == 5) * noise
        elif key == "lam":
            values[place] = 10 * u.force * noise
        elif key in ("f", "measured"):
            values[place] = forces_of(u) * noise
        else:
            assert key == "off", f"{name} has no unit here"
    return values


def outputs(law, u, driven=False, chosen=THETA):
    """Return what a law does in these units, in SI."""
    q, v = state_in(u)
    inputs = {"q": q, "v": v, "ref": reference(law, u, chosen), "z": law.z0}
    if "f_c" in law.function.name_in():
        inputs["f_c"] = forces_of(u) * np.array([1.0, -0.4, 0.7, 2.0])
    out, desired = law.function(**inputs), law.desired(**inputs)
    return {
        "status": int(out["status"]),
        "flags": int(out["flags"]),
        "u": np.array(out["u"]).ravel() / controls_of(u, driven),
        "a": np.array(desired["a"]).ravel() / rates_of(u) * u.s,
        "f_c": np.array(desired["f_c"]).ravel() / forces_of(u),
    }


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.every(7)
def test_a_law_gives_the_same_control_in_all_units(name):
    kind = name.split(":")[0]

    def found(u):
        system = linkage(u, driven=name in DRIVEN)
        if name == "within_limits":
            return outputs(limited(system, u), u)
        given, options = LAWS[name](system, u)
        law = laws_in(u)(kind, system, *given, **options)
        chosen = laws.chosen_coordinates(system).names if name.endswith("chosen") else THETA
        return outputs(law, u, name in DRIVEN, chosen)

    assert np.abs(assert_agrees(found, AGREE)["u"]).max() > 0.1


def test_a_metric_of_ones_is_the_euclidean_one_and_depends_on_units():
    """The reason for the default: the same law, least in the Euclidean norm, in millimetres."""

    def control(u):
        law = laws.computed_torque(linkage(u), posture(u), control_metric=np.ones(4))
        return outputs(law, u)["u"]

    assert np.abs(control(SI) - control(Units(m=1e3))).max() > 0.1


def test_reports_on_a_mechanism_agree_in_all_units():
    def found(u):
        system = linkage(u)
        q, v = state_in(u)
        reach = laws.input_reach(system, q)
        poses = laws.sampled_poses(system, 5, q0=q, spread=0.2)
        tracking = laws.multiplier_tracking(system, q)
        y, rate = q[:2] + 0.1 * u.of(KINDS)[:2], rates_of(u)[:2]
        signals = {"y": y, "ydot": 0 * rate, "yddot": rate / u.s}
        report = laws.servo_report(system, servo(system, u), q, v, signals=signals, **stable(u))
        error = laws.composite_error(system, theta(system), kp=10.0 / u.s)
        error = error(q, v, np.concatenate([y, 0 * rate, 0 * rate])).full()
        laws.gain_condition(system, theta(system), poses, np.tile(v, (len(poses), 1)))
        return {
            "chosen": tuple(laws.chosen_coordinates(system, q).names),
            "shapes": (reach.motions.shape, reach.undriven.shape),
            "margin": reach.margin,
            "poses": poses / u.of(KINDS),
            "workspace": laws.workspace_input_reach(system, poses).margins,
            "independent": (tracking.rank, tracking.rows),
            "ranks": (report.rank_rows, report.rank_motion, report.rank_control),
            "verdicts": (report.consistent, report.controllable, report.attainable),
            "composite error": np.linalg.norm(error) / np.sqrt(u.kg) / u.m * u.s,
        }

    assert_agrees(found, AGREE)


def crank_state(u, a=0.7):
    b = -np.arcsin(0.6 * np.sin(a))
    rate = -0.6 * np.cos(a) / np.cos(b)
    x, speed = 0.3 * np.cos(a) + 0.5 * np.cos(b), -0.3 * np.sin(a) - 0.5 * np.sin(b) * rate
    return u.of(CRANK_KINDS) * [a, b, x], u.of(CRANK_KINDS) / u.s * [1.0, rate, speed]


def crank_task(u):
    weights = np.array([1.0, 0.5, 3.0]) / (u.of(CRANK_KINDS) / u.s**2) ** 2
    return PostureTask(kp=100.0 / u.s**2, weight=weights)


def crank_controls(u):
    return np.array([u.torque, u.force, u.torque])


@pytest.mark.parametrize("limit", [np.inf, 1.0])
@pytest.mark.parametrize("a", [0.7, 1.55, 3.0])
@pytest.mark.every(4)
def test_inverse_dynamics_of_given_equations_agrees_in_all_units(limit, a):
    def found(u):
        system, size = slider_crank(u, limit), u.of(CRANK_KINDS)
        law = InverseDynamicsQP(system, [crank_task(u)], stabilisation=20.0 / u.s)
        q, v = crank_state(u, a)
        solution = law.solve(q, v, np.concatenate([q + size * [0.1, 0.0, 0.02], 0 * v, 0 * v]))
        force = np.array(system.constraint_jacobian(q)).T @ solution.lam
        return {
            "status": solution.status,
            "kept": tuple(solution.independent_rows),
            "a": solution.a / size * u.s**2,
            "force": force / u.torque * size,
            "u": solution.u / crank_controls(u),
        }

    expected = assert_agrees(found, AGREE)
    assert (expected["status"], sum(expected["kept"])) == (0, 2)


@pytest.mark.parametrize("rank_tol", [1e-6, 0.03])
@pytest.mark.every(2)
def test_laws_of_given_equations_agree_in_all_units(rank_tol):
    def found(u):
        system, pose = slider_crank(u), ca.SX.sym("q", 3)
        q, v = crank_state(u)
        crank = ca.Function("crank", [pose], [pose[0]], ["q"], ["theta"])
        crank = laws.function_coordinates(system, crank)
        options = laws.LawOptions(rank_tol=rank_tol)
        passive = laws.passive_joint_control(system, crank, kp=100.0 / u.s**2, options=options)
        computed = laws.computed_torque(system, crank_task(u), options=options)
        ahead, values = q + u.of(CRANK_KINDS) * [0.1, 0.0, 0.02], {}
        for law, ref in ((passive, {"theta_q": q[0] + 0.1}), (computed, {"posture_q": ahead})):
            out = law.function(q=q, v=v, ref=law.reference(**ref), z=law.z0)
            values[f"u of {law.controller.name}"] = out["u"].full().ravel() / crank_controls(u)
            values[f"status of {law.controller.name}"] = int(out["status"])
        return values

    expected = assert_agrees(found, AGREE)
    assert all(np.abs(expected[key]).max() > 0.1 for key in expected if key.startswith("u"))


def loop_forces(u):
    """Weights and ranges of the pin; the cost of a force is in the units of the tasks' cost."""
    return {
        "loop_force_weights": LoopForceWeights({"pin": 1e-3 / u.force**2}),
        "loop_force_limits": LoopForceLimits({"pin": np.array([-30.0, 30.0]) * u.force}),
        "sharing": LoadSharing(),
        "force_reference": True,
        "force_feedback": ForceFeedback(limit=5.0 * u.force, gain=5.0 / u.s),
    }


def joint_limits(u):
    cart = JointLimits(("cart",), velocity=0.29 * u.m / u.s, braking=3.0 * u.m / u.s**2)
    rate = ActuatorLimits(("crank", "geared"), rate=40.0 * u.torque / u.s)
    return {"joint_limits": cart, "soft": [SoftLimit("joints", price=1.0)], "actuator_limits": rate}


OPTIONS = {
    "observer, delay": lambda u: {
        "observer": DisturbanceObserver(bandwidth=20.0 / u.s),
        "delay": 1,
        "torque_rate_weight": 1e-5,
    },
    "levels": lambda _: {"levels": [["crank"], ["cart"]]},
    "loop forces": loop_forces,
    "limits": joint_limits,
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.every(2)
def test_options_of_inverse_dynamics_agree_in_all_units(options):
    """Over five ticks with errors of the model."""

    def found(u):
        accelerations = dict(zip(NAMES, rates_of(u) / u.s, strict=True))
        tasks = [
            PostureTask((x,), kp=60.0 / u.s**2, weight=1.0 / accelerations[x] ** 2, name=x)
            for x in ("crank", "cart")
        ]
        given = {"period": 2e-3 * u.s, "torque_weight": 1e-5} | OPTIONS[options](u)
        law = InverseDynamicsQP(linkage(u), tasks, **given)
        q, v = state_in(u)
        ref = law.reference_at(q)
        ref[law.reference_slices["crank.q"]] += 0.2
        ref[law.reference_slices["cart.q"]] += 0.1 * u.m
        forces = law.reference_slices.get("loop_force", slice(0, 0))
        ref[forces] += 3.0 * u.force
        keys, z = ("u", "a", "force", "relaxed", "learned"), law.z0
        values, statuses = {key: [] for key in keys}, []
        for k in range(TICKS):
            given = {"f_measured": ref[forces] - 0.5 * k * u.force} if law.force_feedback else {}
            solution = law.solve(q, v + 1e-3 * k * rates_of(u), ref, z=z, **given)
            z = solution.z_next
            A = np.array(law.system.constraint_jacobian(q))
            statuses.append(solution.status)
            values["u"].append(solution.u / controls_of(u))
            values["a"].append(solution.a / rates_of(u) * u.s)
            values["force"].append(A.T @ solution.lam / forces_of(u))
            values["relaxed"].append(sum(solution.relaxed.values()) / u.m * u.s**2)  # of the cart
            values["learned"].append(solution.disturbance / forces_of(u))
        values = {key: np.array(value) for key, value in values.items()}
        return values | {"statuses": tuple(statuses)}

    expected = assert_agrees(found, OVER_TICKS)
    assert expected["statuses"] == (0,) * TICKS
    learned, relaxed = (np.abs(expected[key]).max() for key in ("learned", "relaxed"))
    assert (learned > 1e-3, relaxed > 1e-3) == ("observer" in options, options == "limits")


def start(u):
    """Return a pose that is not closed and cannot be held as it is."""
    return u.of(KINDS) * [0.12, 0.7, -1.3, 0.1]


@cache
def rest(u, held=THETA):
    return mb.equilibrium(linkage(u), start(u), held=held)


@cache
def linear_at_rest(u):
    return regulators.linearize(linkage(u), rest(u))


def state_sizes(u):
    return np.concatenate([u.of(KINDS), rates_of(u)])


def weights(u):
    """Return Q of deviations and rates, and R, in these units."""
    return np.repeat([10.0, 0.1], 4) / state_sizes(u) ** 2, 0.3 / controls_of(u) ** 2


def span(columns, size):
    """Return the projector on the span of columns, in SI."""
    Q = np.linalg.qr(columns / size[:, None])[0] if columns.size else columns
    return Q @ Q.T


@pytest.mark.parametrize("held", [THETA, ("slider",), ()])
def test_equilibria_agree_in_all_units(held):
    def found(u):
        at = rest(u, held)
        A = np.array(at.system.constraint_jacobian(at.q))
        return {
            "q": at.q / u.of(KINDS),
            "u": at.u / controls_of(u),
            "force": A.T @ at.lam / forces_of(u),
            "free": span(at.free_directions, u.of(KINDS)),
            "neutral": span(at.neutral_directions, u.of(KINDS)),
            "controls": span(at.control_directions, controls_of(u)),
            "verdicts": (at.at_limit, at.unique_control, at.free_directions.shape),
        }

    expected = assert_agrees(found, ITERATED)
    assert np.abs(expected["u"]).max() > 0.1
    assert not expected["verdicts"][1]  # redundant motors push against each other


def test_controls_at_their_limits_and_refusals_agree_in_all_units():
    def found(u):
        with pytest.raises(err.ProblemError) as refused:
            mb.equilibrium(linkage(u, limit=0.5), start(u), held=THETA)
        strong = mb.equilibrium(linkage(u, limit=1.0), start(u), held=("cart",))
        words = str(refused.value).split("without limits")[0]
        return {"words": words, "at limit": strong.at_limit, "q": strong.q / u.of(KINDS)}

    assert_agrees(found, 1e-6)


def test_linear_models_agree_in_all_units():
    def found(u):
        linear, c = linear_at_rest(u), regulators.controllability(linear_at_rest(u))
        controls = controls_of(u) * [1.0, -0.5, 0.2, 0.4]
        moving = regulators.linearize(linkage(u), *state_in(u), controls)
        seen, values = regulators.observability(linear, np.eye(1, linear.nx)), {"margin": c.margin}
        for name, lin in (("rest", linear), ("moving", moving)):
            rate, below = rates_of(u)[:, None] / u.s, slice(lin.n_q, None)
            a_x = lin.Z_v @ lin.dfdx[below] @ np.hstack([lin.from_dq, lin.from_dv])
            values[f"{name}: a of x"] = a_x * state_sizes(u) / rate
            values[f"{name}: a of u"] = lin.Z_v @ lin.dfdu[below] * controls_of(u) / rate
            values[f"{name}: free"] = span(lin.Z_q, u.of(KINDS))
        verdicts = linear.nx, moving.nx, c.rank, c.controllable, c.stabilisable, len(seen.unseen)
        return values | {"verdicts": verdicts}

    assert assert_agrees(found, ITERATED)["verdicts"][0] == 4


@pytest.mark.parametrize(("kind", "agree"), [("lqr", 1e-6), ("poles", 1e-3)])  # SciPy iterates
def test_gains_agree_in_all_units(kind, agree):
    def found(u):
        linear, (Q, R), T = linear_at_rest(u), weights(u), PERIOD * u.s
        poles = np.array([-4.0, -5.0, -6.0, -7.0]) / u.s
        if kind == "poles":
            made = [regulators.poles_gain(linear, poles, period=t) for t in (None, T)]
        else:
            made = [regulators.lqr_gain(linear, Q, R, period=t).K for t in (None, T)]
            horizon = {"Q_end": Q * u.s, "period": T}
            made.append(regulators.finite_horizon_gains(linear, Q, R, 20, **horizon)[0])
        full = [regulators.gain_in_full_coordinates(linear, K) for K in made]
        return {
            str(k): gain * state_sizes(u) / controls_of(u)[:, None] for k, gain in enumerate(full)
        }

    assert min(np.abs(value).max() for value in assert_agrees(found, agree).values()) > 0.1


def trajectory_lqr(linear, Q, R, T):
    rows = (np.tile(x, (20, 1)) for x in (linear.q, linear.v, linear.u))
    along = regulators.linearize_along(linear.system, *rows)
    return regulators.trajectory_lqr(along, Q, R, hold=linear, options=LawOptions(period=T))


def lqg(linear, Q, R, T, u):
    noise = np.concatenate([np.zeros(4), (rates_of(u) / u.s) ** 2 * u.s])
    sensors, V = regulators.encoders(linear.system, THETA), 1e-3 * u.of(KINDS[:2]) ** 2
    filter_ = estimation.kalman(linear, sensors, noise, V, period=T, gate=None)
    return estimation.lqg(filter_, regulators.lqr_gain(linear, Q, R, period=T).K)


LINEAR_LAWS = {
    "lqr": lambda linear, Q, R, T, _u: regulators.lqr(linear, Q, R, options=LawOptions(period=T)),
    "finite_horizon_lqr": lambda linear, Q, R, T, u: regulators.finite_horizon_lqr(
        linear, Q, R, 20 * T, Q_end=Q * u.s, options=LawOptions(period=T)
    ),
    "trajectory_lqr": lambda linear, Q, R, T, _u: trajectory_lqr(linear, Q, R, T),
    "lqg": lqg,
    "lti_inverse_dynamics": lambda linear, _Q, _R, T, u: regulators.lti_inverse_dynamics(
        linear, options=LawOptions(period=T), **motion(u)
    ),
}


@pytest.mark.parametrize("name", LINEAR_LAWS)
@pytest.mark.every(2)
def test_linear_laws_give_the_same_control_in_all_units(name):
    """Beside their equilibrium."""

    def found(u):
        linear = linear_at_rest(u)
        law = LINEAR_LAWS[name](linear, *weights(u), PERIOD * u.s, u)
        q = linear.q + u.of(KINDS) * [0.02, 0.05, -0.04, 0.01]
        v, ref = rates_of(u) * np.array([0.1, -0.2, 0.3, 0.05]), np.zeros(0)
        if name == "lti_inverse_dynamics":
            ref = np.array([0.1, -0.2, 0.3, 0.1, 1.0, -2]) / np.repeat([1.0, u.s, u.s**2], 2)
        out = law.function(q=q, v=v, ref=ref, z=law.z0)
        return {"u": out["u"].full().ravel() / controls_of(u), "status": int(out["status"])}

    assert np.abs(assert_agrees(found, 1e-6)["u"]).max() > 0.01


@pytest.mark.parametrize("u", [SI, *OTHERS], ids=str)
def test_an_open_state_is_refused_alike_in_all_units(u):
    """Open by less than the tolerance it is closed; by more, refused."""
    system, (q, v) = linkage(u), state_in(u)
    gap = 1e-6 * np.abs(system.frame("tip").pose(q)[0].full()).max()
    state = partial(regulators.linearize, system, v=v, u=0 * controls_of(u))
    state(q=q + u.of(KINDS) * [0, 0, 0, 0.05 * gap / u.m])
    with pytest.raises(err.ProblemError, match=r"open by"):
        state(q=q + u.of(KINDS) * [0, 0, 0, 5.0 * gap / u.m])


def test_an_equilibrium_of_given_equations_agrees_in_all_units():
    def found(u):
        at = mb.equilibrium(slider_crank(u), u.of(CRANK_KINDS) * [0.7, -0.4, 0.7])
        return {"q": at.q / u.of(CRANK_KINDS), "u": at.u / crank_controls(u)}

    assert_agrees(found, 1e-6)
