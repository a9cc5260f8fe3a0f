"""A mechanism by MuJoCo's own numbers; time derivatives by differences of fourth order."""

import mujoco
import numpy as np

from campaign.mechanics import Array, FrameNumbers, Mechanics, Numbers

STEP = (
    2e-3  # rad, or the same share of a coordinate's size; error STEP⁴ / 30, rounding 1e-16 / STEP
)
STENCIL = ((1, 8 / 12), (-1, -8 / 12), (2, -1 / 12), (-2, 1 / 12))


class MujocoMechanics(Mechanics):
    """A compiled model: M, h, passive forces, moments, rows of equalities and frames."""

    def __init__(self, model: mujoco.MjModel, frames, size: Array) -> None:
        """`frames` are (kind, name); `size` (nv,) is the size of each coordinate."""
        self.model, self.data = model, mujoco.MjData(model)
        model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        for flag in ("CONTACT", "LIMIT", "FRICTIONLOSS"):
            model.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}")
        self.nq, self.nv, self.nu, self.size = model.nq, model.nv, model.nu, size
        self.frames = tuple(dict.fromkeys(frames))

    def integrate(self, q: Array, dv: Array) -> Array:
        moved = np.array(q, dtype=float)
        mujoco.mj_integratePos(self.model, moved, np.asarray(dv, dtype=float), 1.0)
        return moved

    def difference(self, q0: Array, q1: Array) -> Array:
        dv = np.zeros(self.nv)
        mujoco.mj_differentiatePos(self.model, dv, 1.0, q0, q1)
        return dv

    def residual(self, q: Array, on: Array) -> Array:
        self._place(q, on)
        return self.data.efc_pos[self._equalities()].copy()

    def rows(self, q: Array, on: Array) -> Array:
        self._place(q, on)
        return self._rows()

    def numbers(self, q: Array, v: Array, on: Array) -> Numbers:
        rate = np.abs(v / self.size).max()
        step = STEP / rate if rate > 0 else 0.0
        dA = np.zeros(0)
        dJ = {key: np.zeros(3 if key[0] == "com" else 6) for key in self.frames}
        for k, weight in STENCIL if step else ():
            self._place(self.integrate(q, k * step * v), on)
            dA = (
                dA + weight / step * (self._rows() @ v)
                if dA.size
                else weight / step * (self._rows() @ v)
            )
            for key in self.frames:
                dJ[key] = dJ[key] + weight / step * (self._jacobian(key) @ v)
        self._place(q, on)
        data, model = self.data, self.model
        data.qvel[:] = v
        mujoco.mj_fwdVelocity(model, data)
        M = np.zeros((self.nv, self.nv))
        mujoco.mj_fullM(model, data, M)
        A = self._rows()
        B = np.zeros((model.nu, self.nv))
        if model.nu:
            mujoco.mju_sparse2dense(
                B, data.actuator_moment, data.moment_rownnz, data.moment_rowadr,
                data.moment_colind,
            )  # fmt: skip
        return Numbers(
            M=M,
            f=data.qfrc_passive - data.qfrc_bias,
            B=B.T,
            A=A,
            c=dA if dA.size else np.zeros(len(A)),
            frames={
                key: FrameNumbers(*self._pose(key), self._jacobian(key), dJ[key])
                for key in self.frames
            },
        )

    def servos(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """Return gain and bias of `p = gain u + bias`, and the range of p, of joint actuators."""
        model, data = self.model, self.data
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        prm = model.actuator_biasprm
        bias = np.where(
            model.actuator_biastype == int(mujoco.mjtBias.mjBIAS_AFFINE),
            prm[:, 0] + prm[:, 1] * data.actuator_length + prm[:, 2] * data.actuator_velocity,
            0.0,
        )
        gear, joints = model.actuator_gear[:, :1], model.actuator_trnid[:, 0]
        of_joint = np.sort(model.jnt_actfrcrange[joints] / gear, axis=1)
        limited = model.jnt_actfrclimited[joints].astype(bool)[:, None]
        limits = np.where(limited, of_joint, [-np.inf, np.inf])
        own = model.actuator_forcelimited.astype(bool)[:, None]
        own = np.where(own, model.actuator_forcerange, [-np.inf, np.inf])
        both = [np.maximum(limits[:, 0], own[:, 0]), np.minimum(limits[:, 1], own[:, 1])]
        return model.actuator_gainprm[:, 0].copy(), bias, np.column_stack(both)

    def root_of(self, key: tuple[str, str]) -> int:
        """Return the rigid body (of bodies welded to each other) that carries a frame."""
        return int(self.model.body_weldid[self._body(key)])

    def _place(self, q: Array, on: Array) -> None:
        self.data.qpos[:] = q
        self.data.qvel[:] = 0
        self.data.eq_active[:] = np.asarray(on) > 0.5
        mujoco.mj_fwdPosition(self.model, self.data)

    def _equalities(self) -> Array:
        kinds = self.data.efc_type[: self.data.nefc]
        return np.flatnonzero(kinds == mujoco.mjtConstraint.mjCNSTR_EQUALITY)

    def _rows(self) -> Array:
        nefc = self.data.nefc
        if not nefc:
            return np.zeros((0, self.nv))
        return self.data.efc_J[: nefc * self.nv].reshape(nefc, self.nv)[self._equalities()].copy()

    def _identifier(self, key: tuple[str, str]) -> int:
        kind = mujoco.mjtObj.mjOBJ_SITE if key[0] == "site" else mujoco.mjtObj.mjOBJ_BODY
        return mujoco.mj_name2id(self.model, kind, key[1])

    def _body(self, key: tuple[str, str]) -> int:
        place = self._identifier(key)
        return int(self.model.site_bodyid[place]) if key[0] == "site" else place

    def _jacobian(self, key: tuple[str, str]) -> Array:
        J = np.zeros((6, self.nv))
        if key[0] == "com":
            mujoco.mj_jacSubtreeCom(self.model, self.data, J[:3], self._body(key))
            return J[:3]
        compute = mujoco.mj_jacSite if key[0] == "site" else mujoco.mj_jacBody
        compute(self.model, self.data, J[:3], J[3:], self._identifier(key))
        return J

    def _pose(self, key: tuple[str, str]) -> tuple[Array, Array]:
        data, place = self.data, self._identifier(key)
        if key[0] == "com":
            return data.subtree_com[place].copy(), np.eye(3)
        if key[0] == "site":
            return data.site_xpos[place].copy(), data.site_xmat[place].reshape(3, 3).copy()
        return data.xpos[place].copy(), data.xmat[place].reshape(3, 3).copy()
