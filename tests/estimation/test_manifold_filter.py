"""The filter on the constraint manifold: optimal on linear systems, consistent on loops.

References are written anew from the definitions: nothing of the filter's equations is used.
"""

from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from drawn_mechanism import DrawnMechanism, batch_of, drawn_start, nees
from mpmath import matrix, mp, mpf, sqrt
from scipy.linalg import solve_discrete_are
from scipy.stats import chi2

import mbcasadi as mb
from mbcasadi.errors import ProblemError, ShapeError, UnknownNameError
from mbcasadi.estimation import (
    FilterOptions,
    Measured,
    UnknownForce,
    UnknownParameter,
    manifold_filter,
)
from mbcasadi.system.coordinates import scalar_coordinates

MODELS = Path(__file__).parents[2] / "mujoco_models"
DT = 1e-3
ROUNDING = 1e-9


def positions(*joints, noise=1e-3):
    return [Measured(joint, noise, kind="position") for joint in joints]


def linear_case(dt):
    """Return a filter of two masses and a spring, and F, G, Q, H, R of its motion over dt."""
    m, K = np.array([1.0, 2.0]), 50 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    noise, density = np.array([2e-3, 0.05]), 0.7
    system = mb.read_mjcf(MODELS / "two_mass_spring.xml")
    sensors = [Measured("x1", noise[0], kind="position"), Measured("x2", noise[1], kind="rate")]
    options = FilterOptions(false_alarm=None)
    filter_ = manifold_filter(system, sensors, force_noise=density, options=options, period=dt)
    eye, zero = np.eye(2), np.zeros((2, 2))
    half = np.block([[eye, dt / 2 * eye], [zero, eye]])
    kick = np.block([[eye, zero], [-dt * K / m[:, None], eye]])
    F, G = half @ kick @ half, half @ np.vstack([zero, np.diag(dt / m)])
    H = np.array([[1.0, 0, 0, 0], [0, 0, 0, 1.0]])
    return filter_, F, G, G @ G.T * density**2 / dt, H, np.diag(noise**2)


def test_a_linear_system_has_the_kalman_filter():
    filter_, F, G, Q, H, R = linear_case(DT)
    assert filter_.unobservable == ()
    rng, rest = np.random.default_rng(0), np.array([0, 0.5, 0, 0])
    x, z = rest.copy(), filter_.z0
    L0 = z[4:20].reshape(4, 4, order="F")
    P = L0 @ L0.T
    for k in range(400):
        u, y = np.sin(k / 20), H @ rest + rng.standard_normal(2) * 10 * np.sqrt(np.diag(R))
        x = rest + F @ (x - rest) + G @ [u, 0]
        P = F @ P @ F.T + Q
        gain = P @ H.T @ np.linalg.inv(H @ P @ H.T + R)
        x, P = x + gain @ (y - H @ x), P - gain @ H @ P
        out = filter_.function(y=y, valid=[1, 1], u=u, dt=DT, z=z)
        z = out["z_next"]
        ours = np.array(ca.vertcat(out["q"], out["v"])).ravel()
        assert ours == pytest.approx(x, abs=ROUNDING, rel=ROUNDING)
        assert np.array(out["covariance"]) == pytest.approx(P, abs=ROUNDING * np.max(P))


def test_its_covariance_settles_at_that_of_riccati():
    dt = 0.01
    filter_, F, _, Q, H, R = linear_case(dt)
    z = filter_.z0
    for _ in range(10_000):
        out = filter_.function(y=[0, 0], valid=[1, 1], u=0, dt=dt, z=z)
        z = out["z_next"]
    predicted = solve_discrete_are(F.T, H.T, Q, R)
    settled = predicted - predicted @ H.T @ np.linalg.solve(H @ predicted @ H.T + R, H @ predicted)
    scale = np.sqrt(np.outer(np.diag(settled), np.diag(settled)))
    assert np.array(out["covariance"]) / scale == pytest.approx(settled / scale, abs=1e-7)


def drawn_runs(name, joints, density, ticks, options, u, runs=50, noise=1e-3):
    """Return NEES (times, runs), the ranks of P, and the filter's last outputs."""
    system = mb.read_mjcf(MODELS / f"{name}.xml")
    filter_ = manifold_filter(
        system, positions(*joints, noise=noise), force_noise=density, options=options
    )
    rng = np.random.default_rng(1)
    q, v = drawn_start(system, filter_, runs, rng)
    world = DrawnMechanism(system, DT, np.full(system.nv, density), q, v, rng)
    call, z = batch_of(filter_, runs), np.tile(filter_.z0, (runs, 1))
    rows, n = [scalar_coordinates(system)[j][0] for j in joints], 2 * system.nv
    found, ranks, nis = [], set(), []
    for k in range(ticks):
        control = u(k * DT) * np.ones(system.nu)
        world.step(world.applied(control))
        y = world.q[:, rows] + noise * rng.standard_normal((runs, len(rows)))
        out = call(z, y=y, valid=np.ones(len(rows)), u=control, dt=[[DT]])
        z = out["z_next"]
        nis.append(np.mean(out["residual"] ** 2))
        if k % 25 == 24:
            P = out["covariance"].reshape(runs, n, n)
            of_each = [
                nees(system, world.q[r], world.v[r], out["q"][r], out["v"][r], P[r])
                for r in range(runs)
            ]
            found.append([value for value, _ in of_each])
            ranks |= {rank for _, rank in of_each}
    return system, np.array(found), ranks, out, np.mean(nis), filter_


def require_consistent(found, rank, share=1e-4):
    runs = found.shape[1]
    low, high = chi2.ppf([share, 1 - share], rank * runs) / runs
    means = found.mean(axis=1)
    assert np.all((low < means) & (means < high)), (low, means, high)


def test_a_four_bar_with_one_encoder_is_consistent_on_its_tangent_space():
    options = FilterOptions(position=0.05)
    system, found, ranks, out, nis, filter_ = drawn_runs(
        "four_bar", ["crank"], 0.02, 300, options, lambda t: 0.5 * np.sin(6 * t)
    )
    assert filter_.unobservable == ()
    assert ranks == {2}  # one position and its rate, of three coordinates and 3 rows of rank 2
    require_consistent(found, 2)
    assert nis == pytest.approx(1, abs=0.05)
    assert not out["status"].any()
    for q, v, P in zip(out["q"], out["v"], out["covariance"].reshape(-1, 6, 6), strict=True):
        assert np.abs(np.array(system.constraint(q))).max() < 1e-12
        A = np.array(system.constraint_jacobian(q))
        assert np.abs(A @ v).max() < 1e-9
        deviations = np.sqrt(np.diag(P))
        assert np.abs(A @ P[:3]).max() < 1e-9 * deviations.max() ** 2
        across = _rate_slopes(system, q, v) @ P[:3] + A @ P[3:]
        assert np.abs(A @ P[3:]).max() > 1e-6  # v leaves null(A) with q, and the errors know
        assert np.abs(across).max() < 1e-8


def _rate_slopes(system, q, v):
    """Return ∂(A v)/∂q by differences."""
    steps = 1e-6 * np.eye(len(q))
    psi = [np.array(system.constraint_jacobian(q + s)) @ v for s in (*steps, *-steps)]
    return (np.array(psi[: len(q)]) - np.array(psi[len(q) :])).T / 2e-6


@pytest.mark.long
def test_a_3rrr_with_two_of_its_three_encoders_is_consistent():
    _, found, ranks, out, nis, filter_ = drawn_runs(
        "planar_3rrr",
        ["proximal_a", "proximal_b"],
        2e-3,
        200,
        FilterOptions(position=0.003, speed=0.03),
        lambda t: 0.1 * np.sin(6 * t),
        runs=16,
    )
    assert "drifts" in filter_.unobservable[0]
    assert "proximal_c" in filter_.unobservable[0]
    assert ranks == {6}
    require_consistent(found, 6)
    assert nis == pytest.approx(1, abs=0.1)
    assert not out["status"].any()


def test_a_slider_crank_is_followed_through_its_singular_poses():
    system, noise, speed = mb.read_mjcf(MODELS / "slider_crank.xml"), 1e-3, 3.0
    options = FilterOptions(position=1e-3, speed=5.0)
    filter_ = manifold_filter(system, positions("crank"), force_noise=0.5, options=options)
    rng, z, angle, passed, used = np.random.default_rng(2), filter_.z0, filter_.z0[0], 0, []
    for _ in range(4000):
        u = _holding_torque(system, angle + speed * DT / 2, speed)
        angle += speed * DT
        q, v = _branch(angle, speed)
        y = angle + noise * rng.standard_normal()
        out = filter_.function(y=y, valid=1, u=u, dt=DT, z=z)
        z = out["z_next"]
        error = np.append(np.array(out["q"]).ravel() - q, np.array(out["v"]).ravel() - v)
        deviation = np.sqrt(np.diag(np.array(out["covariance"])))
        assert int(out["status"]) == 0
        assert np.all(
            np.abs(error) < 6 * deviation + 2e-3 * np.array([1, 1, 1, speed, speed, speed])
        )
        passed += abs(np.cos(angle)) < speed * DT / 2
        used.append(np.abs(error[:3]).max())
    assert passed == 4
    assert np.sqrt(np.mean(np.square(used[100:]))) < 1.5 * noise


def _branch(angle, speed):
    """Return the state of the crank on the branch where the slider moves."""
    slope = -2 * np.sin(angle)
    return np.array([angle, 2 * np.cos(angle), angle]), speed * np.array([1, slope, 1])


def _holding_torque(system, angle, speed):
    """Return the torque at which the crank keeps its speed on this branch."""
    q, v = _branch(angle, speed)
    along, a = np.array([1, -2 * np.sin(angle), 1]), np.array([0, -2 * np.cos(angle) * speed**2, 0])
    M, h = np.array(system.mass_matrix(q)), np.array(system.bias_force(q, v)).ravel()
    return along @ (M @ a + h)


def test_an_edge_that_does_not_slip_sideways_is_consistent():
    q, v = ca.SX.sym("q", 3), ca.SX.sym("v", 3)
    system = mb.from_lagrangian(
        q,
        v,
        kinetic=ca.sumsqr(v[:2]) / 2 + 0.05 * v[2] ** 2,
        potential=ca.SX(0),
        A=ca.horzcat(-ca.sin(q[2]), ca.cos(q[2]), 0),
    )
    x, y, angle = system.coordinate_names
    runs, noise, density = 30, 1e-3, 0.05
    filter_, blind = (
        manifold_filter(
            system,
            positions(*names, noise=noise),
            force_noise=density,
            options=FilterOptions(position=0.02),
        )
        for names in ((x, y), (angle,))
    )
    assert len(blind.unobservable) == 2
    assert f"in which {x} moves" in blind.unobservable[0]
    assert f"in which {angle} moves" in filter_.unobservable[0]  # at rest, where it starts
    rng = np.random.default_rng(7)
    world = DrawnMechanism(
        system, DT, np.full(3, density), *drawn_start(system, filter_, runs, rng), rng
    )
    call, z, found = batch_of(filter_, runs), np.tile(filter_.z0, (runs, 1)), []
    for k in range(400):
        f = np.tile([1.0, 0.0, 0.03 * np.sin(k / 200)], (runs, 1))
        world.step(f)
        seen = world.q[:, :2] + noise * rng.standard_normal((runs, 2))
        out = call(z, y=seen, valid=[[1, 1]], f=f, dt=[[DT]])
        z = out["z_next"]
        if k % 50 == 49:
            P = out["covariance"].reshape(runs, 6, 6)
            of_each = [
                nees(system, world.q[r], world.v[r], out["q"][r], out["v"][r], P[r])
                for r in range(runs)
            ]
            assert {rank for _, rank in of_each} == {5}  # three positions, two rates
            found.append([value for value, _ in of_each])
    require_consistent(np.array(found), 5)


def test_an_overconstrained_loop_keeps_its_one_motion():
    system = mb.read_mjcf(MODELS / "bricard.xml")
    filter_ = manifold_filter(
        system,
        positions(system.tree.joints[0].name),
        force_noise=0.02,
        options=FilterOptions(position=0.02),
    )
    z, rng = filter_.z0, np.random.default_rng(8)
    drive = np.zeros(filter_.function.numel_in(2))
    for _ in range(50):
        y = filter_.z0[0] + 1e-3 * rng.standard_normal()
        out = filter_.function(y, 1, drive, DT, z)
        z = out[2]
    variances = np.linalg.eigvalsh(np.array(out[3]))
    assert np.sum(variances > 1e-9 * variances.max()) == 2  # 6 joints, 6 rows of rank 5
    assert np.abs(np.array(system.constraint(out[0]))).max() < 1e-12
    assert int(out[4]) == 0


ARM = """
<mujoco model="arm"><compiler angle="radian"/>
<worldbody><body name="upper"><joint name="shoulder" axis="0 1 0" damping="0.5"/>
<geom type="capsule" fromto="0 0 0 .4 0 0" size=".03" mass="3"/>
<body name="fore" pos=".4 0 0"><joint name="elbow" axis="0 1 0" damping="0.2"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".025" mass="2"/>
<body name="payload" pos=".3 0 0"><geom type="sphere" size=".04" mass="1"/><site name="tip"/>
</body></body></body></worldbody>
<actuator><motor name="m1" joint="shoulder"/><motor name="m2" joint="elbow"/></actuator>
<sensor><accelerometer name="felt" site="tip"/><gyro name="turning" site="tip"/></sensor>
</mujoco>"""
PAYLOAD = 3.0


@pytest.mark.parametrize(("felt", "iterations"), [(False, 1), (True, 4)])
@pytest.mark.every(2)
def test_a_payload_is_found_while_an_arm_moves(felt, iterations):
    system = mb.read_mjcf(ARM, parameters=["body:payload:mass", "joint:elbow:damping"])
    names = ["shoulder", "elbow"]
    sensors = positions(*names, noise=1e-4) + ([Measured("felt", 0.05)] if felt else [])
    filter_ = manifold_filter(
        system,
        sensors,
        force_noise=0.02,
        parameters=[UnknownParameter("body:payload:mass", 2.0)],
        options=FilterOptions(position=1e-3, speed=1e-2, iterations=iterations),
    )
    assert filter_.unobservable == ()
    true = system.at({"body:payload:mass": PAYLOAD})
    rng, z = np.random.default_rng(3), filter_.z0
    read = mb.dynamics.predicted_readings(true, ["felt"])
    world = DrawnMechanism(true, DT, np.full(2, 0.02), np.zeros((1, 2)), np.zeros((1, 2)), rng)
    p, first = system.parameters.values, None
    for k in range(2000):
        q, v, t = world.q[0], world.v[0], k * DT
        goal = np.array([0.5 * np.sin(2 * np.pi * t), 0.7 * np.sin(3 * np.pi * t)])
        u = np.array([60, 25]) * (goal - q) - np.array([6, 2]) * v
        world.step(world.applied(u))
        y = world.q[0] + 1e-4 * rng.standard_normal(2)
        if felt:
            reading = read(q=world.q[0], v=world.v[0], f=0, u=u, wrenches=0)["y"]
            y = np.append(y, np.array(reading).ravel() + 0.05 * rng.standard_normal(3))
        out = filter_.function(y=y, valid=np.ones(len(sensors)), u=u, p=p, dt=DT, z=z)
        z = out["z_next"]
        first = abs(float(out["states"]) - PAYLOAD) if first is None else first
        assert int(out["status"]) == 0
    deviation = float(ca.sqrt(out["covariance"][4, 4]))
    assert abs(float(out["states"]) - PAYLOAD) < min(0.02 * PAYLOAD, 5 * deviation)
    assert felt or first > 1.5  # the filter did not know it


def test_a_filter_on_a_circle_is_a_dense_one_with_50_digits():
    mass, length, gravity, walk, density, noise = 1.3, 0.7, 9.81, 0.4, 0.6, 2e-3
    q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
    system = mb.from_lagrangian(
        q,
        v,
        kinetic=mass / 2 * ca.sumsqr(v),
        potential=mass * gravity * q[1],
        phi=(ca.sumsqr(q) - length**2) / 2,
    )
    x_name = system.coordinate_names[0]
    filter_ = manifold_filter(
        system,
        [Measured(x_name, noise, kind="position")],
        force_noise=density,
        disturbances=[UnknownForce(x_name, walk, 0.5)],
        q0=[length * 0.6, -length * 0.8],
        options=FilterOptions(false_alarm=None),
    )
    with mp.workdps(50):
        reference = _CircleFilter(mass, length, gravity, (walk, density, noise))
        reference.start(filter_.z0)
        rng, z = np.random.default_rng(4), filter_.z0
        for _ in range(40):
            dt = DT * rng.uniform(0.5, 2)
            y = float(reference.q[0]) + 3 * noise * rng.standard_normal()
            f = rng.standard_normal(2) * 5
            reference.tick(y, f, dt)
            out = filter_.function(y=y, valid=1, f=f, dt=dt, z=z)
            z = out["z_next"]
            state = np.array(ca.vertcat(out["q"], out["v"], out["states"])).ravel()
            assert state == pytest.approx(reference.state, abs=1e-8)
            gap = np.array(out["covariance"]) - reference.covariance
            assert np.abs(gap).max() < 1e-7 * np.abs(reference.covariance).max()


class _CircleFilter:
    """A dense extended Kalman filter of a particle on a circle, with a force that walks."""

    def __init__(self, mass, length, gravity, noises):
        self.m, self.l, self.g = mpf(mass), mpf(length), mpf(gravity)
        self.walk, self.density, self.noise = (mpf(x) for x in noises)

    def start(self, z0):
        numbers = [mpf(float(x)) for x in z0]
        self.q, self.v, self.d = numbers[:2], numbers[2:4], numbers[4]
        L = matrix(5, 5)
        for j in range(5):
            for i in range(5):
                L[i, j] = numbers[5 + 5 * j + i]
        self.P = L * L.T

    def acceleration(self, q, v, force):
        """Return P f / m - A⁺ c with A = qᵀ, c = vᵀ v."""
        size2 = q[0] ** 2 + q[1] ** 2
        along = (q[0] * force[0] + q[1] * force[1]) / size2
        c = v[0] ** 2 + v[1] ** 2
        return [(force[i] - along * q[i]) / self.m - q[i] * c / size2 for i in range(2)]

    def moved(self, x, f, dt):
        q, v = [x[i] + dt / 2 * x[2 + i] for i in range(2)], [x[2], x[3]]
        a = self.acceleration(q, v, [f[0] + x[4], f[1] - self.m * self.g])
        v = [v[i] + dt * a[i] for i in range(2)]
        return [q[0] + dt / 2 * v[0], q[1] + dt / 2 * v[1], *v, x[4]]

    def closed(self, x):
        size = sqrt(x[0] ** 2 + x[1] ** 2)
        q = [self.l * x[0] / size, self.l * x[1] / size]
        along = (q[0] * x[2] + q[1] * x[3]) / self.l**2
        return [*q, x[2] - along * q[0], x[3] - along * q[1], x[4]]

    def tick(self, y, f, dt):
        f, dt, y = [mpf(float(x)) for x in f], mpf(dt), mpf(float(y))
        x = [*self.q, *self.v, self.d]
        F = self._jacobian(lambda e: self.moved(e, f, dt), x)
        G = self._jacobian(lambda e: self.moved(x, [f[0] + e[0], f[1] + e[1]], dt), [mpf(0)] * 2)
        grown = matrix(5, 5)
        grown[4, 4] = self.walk**2 * dt
        P = F * self.P * F.T + G * G.T * (self.density**2 / dt) + grown
        x = self.moved(x, f, dt)
        S = P[0, 0] + self.noise**2
        gain = [P[i, 0] / S for i in range(5)]
        x = [x[i] + gain[i] * (y - x[0]) for i in range(5)]
        P = P - matrix(gain) * S * matrix(gain).T
        T = self._jacobian(self.closed, self.closed(x))
        x, self.P = self.closed(x), T * P * T.T
        self.q, self.v, self.d = x[:2], x[2:4], x[4]

    @staticmethod
    def _jacobian(function, x):
        step, columns = mpf(10) ** -20, []
        for k in range(len(x)):
            ends = [
                function([e + (step * s if i == k else 0) for i, e in enumerate(x)])
                for s in (1, -1)
            ]
            columns.append([(a - b) / (2 * step) for a, b in zip(*ends, strict=True)])
        return matrix(columns).T

    @property
    def state(self):
        return np.array([float(x) for x in (*self.q, *self.v, self.d)])

    @property
    def covariance(self):
        return np.array([[float(self.P[i, j]) for j in range(5)] for i in range(5)])


def test_a_rotation_is_followed_with_its_gyro_and_iterations_agree():
    model = """
    <mujoco model="top"><option gravity="0 0 0"/><worldbody><body name="top"><joint name="tip"
    type="ball"/><geom type="box" size=".1 .2 .3" mass="2"/><site name="imu"/></body></worldbody>
    <sensor><gyro name="turning" site="imu"/><framequat name="seen" objtype="site"
    objname="imu"/></sensor></mujoco>"""
    system = mb.read_mjcf(model)
    sensors = [Measured("turning", 0.01), Measured("seen", 0.005)]
    once, often = (
        manifold_filter(
            system,
            sensors,
            force_noise=0.05,
            options=FilterOptions(position=0.5, speed=2.0, iterations=k),
        )
        for k in (1, 3)
    )
    assert once.unobservable == ()
    rng = np.random.default_rng(5)
    found = []
    for filter_ in (once, often):
        q, v = np.array([[0.9, 0.3, -0.3, 0.1]]), np.array([[0.5, 1.0, -2.0]])
        world = DrawnMechanism(
            system, DT, np.full(3, 0.05), q / np.linalg.norm(q), v, np.random.default_rng(6)
        )
        z, values = filter_.z0, []
        for k in range(400):
            world.step(np.zeros((1, 3)))
            sign = -1 if k % 7 == 3 else 1  # q and -q are one rotation
            quat = sign * world.q[0] / np.linalg.norm(world.q[0])
            y = np.concatenate([world.v[0], quat]) + np.repeat([0.01, 0.005], [3, 4]) * (
                rng.standard_normal(7)
            )
            out = filter_.function(y=y, valid=[1, 1], f=np.zeros(3), dt=DT, z=z)
            z = out["z_next"]
            args = (world.q[0], world.v[0], out["q"], np.array(out["v"]).ravel())
            values.append(nees(system, *args, np.array(out["covariance"]))[0])
        assert int(out["status"]) == 0
        assert np.linalg.norm(np.array(system.difference(world.q[0], out["q"]))) < 3e-3
        found.append(np.mean(values[100:]))
    assert np.all(np.abs(np.array(found) - 6) < 4), found


@pytest.mark.parametrize(
    ("sensors", "options", "error", "text"),
    [
        ([], {}, ProblemError, "nothing is measured"),
        ([Measured("eye", 1e-3)], {}, UnknownNameError, "eye"),
        ([Measured("knee", 1e-3, kind="position")], {}, UnknownNameError, "knee"),
        (positions("crank"), {"force_noise": -1.0}, ProblemError, "force_noise"),
        (positions("crank"), {"force_noise": [1.0, 2.0]}, ShapeError, "force_noise"),
        (positions("crank"), {"q0": [0.0]}, ShapeError, "q0"),
        (
            positions("crank"),
            {"disturbances": [UnknownForce("knee", 1.0, 1.0)]},
            UnknownNameError,
            "knee",
        ),
        (
            positions("crank"),
            {"parameters": [UnknownParameter("body:crank:mass", 1.0)]},
            UnknownNameError,
            "body:crank:mass",
        ),
        (
            positions("crank"),
            {"disturbances": [UnknownForce("crank", 1.0, 1.0)] * 2},
            ProblemError,
            "once",
        ),
    ],
)
def test_what_no_filter_can_be_made_of_is_an_error(sensors, options, error, text):
    system = mb.read_mjcf(MODELS / "four_bar.xml")
    with pytest.raises(error, match=text):
        manifold_filter(system, sensors, **({"force_noise": 1.0} | options))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Measured("crank", 0.0),
        lambda: Measured("crank", -1.0),
        lambda: UnknownForce("crank", 1.0, 0.0),
        lambda: UnknownParameter("body:crank:mass", -1.0),
        lambda: FilterOptions(iterations=0),
        lambda: FilterOptions(false_alarm=1.5),
    ],
)
def test_noise_and_counts_out_of_range_are_errors(make):
    with pytest.raises(ProblemError):
        make()


def test_an_encoder_that_is_slower_than_the_ticks_is_contradicted_and_then_followed():
    """A slider-crank is elsewhere than its filter has it; every fifth tick has a sample."""
    system = mb.read_mjcf(MODELS / "slider_crank.xml")
    joint = system.tree.joints[0].name
    own = manifold_filter(system, positions(joint), force_noise=0.02)
    row, start = scalar_coordinates(system)[joint][0], float(own.z0[0])
    z, states = own.z0, []
    for k in range(1500):
        y = start + 0.4 * (k >= 300)
        out = own.function(y=y if k % 5 == 0 else np.nan, valid=1, u=0, dt=DT, z=z)
        z = out["z_next"]
        states.append((float(out["q"][row]), int(out["status"])))
    q, status = np.array(states).T
    assert not (status == 3).any(), "a tick without a sample is no bad input"
    assert set(status[150:300]) == {0}
    assert (status[300:600] == 2).any()
    assert q[-1] == pytest.approx(start + 0.4, abs=0.01)


@pytest.mark.parametrize("gap", [0.5, 5.0])
def test_a_start_that_no_loop_allows_is_an_error(gap):
    system = mb.read_mjcf(MODELS / "slider_crank.xml")
    q0 = np.zeros(system.nq)
    q0[-1] = gap
    with pytest.raises(ProblemError, match="loops do not close"):
        manifold_filter(system, positions(system.tree.joints[0].name), force_noise=0.1, q0=q0)
