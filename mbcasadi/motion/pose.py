"""The pose of a frame: a position and an orientation, in numbers or in CasADi's expressions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mbcasadi.argument_kinds import checked
from mbcasadi.errors import MissingExtraError, ProblemError, ShapeError
from mbcasadi.motion import pose_functions as functions
from mbcasadi.shapes import column, real_array
from mbcasadi.shapes import matrix as matrix_of
from mbcasadi.short_text import summarised
from mbcasadi.spatial import add, conjugate, multiply, rotate, rotate_back, rotation

Array = NDArray[np.float64]
Expression = ca.SX | ca.MX
Numbers = Any
"""An array, or an expression of CasADi in its place."""

ORTHONORMAL = 1e-6
"""Largest difference of `Rᵀ R` from the identity that is taken for rounding."""

NO_ROTATION = 1e-12
"""Length of a quaternion below which it has no direction."""


@summarised
@dataclass(frozen=True, eq=False)
class Pose:
    """`T_WB`, the pose of a frame B in a frame W: a point x of B is at `p + R x` in W.

    `T_AB @ T_BC` is `T_AC`. Numbers and expressions (SX, MX) may be mixed; a quaternion of numbers
    is normalised, one of expressions is taken to be unit.

    Attributes:
        position: (3,) p, m.
        quaternion: (4,) w x y z, as in MuJoCo.

    Raises:
        ShapeError: a wrong shape, NaN or infinity.
        ProblemError: a quaternion of length zero.
    """

    position: Any = (0.0, 0.0, 0.0)
    quaternion: Any = (1.0, 0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", _column("position", self.position, 3))
        q = _column("quaternion", self.quaternion, 4)
        if isinstance(q, np.ndarray):
            length = float(np.linalg.norm(q))
            if length < NO_ROTATION:
                raise ProblemError(f"quaternion {q} has the length zero; expected w x y z")
            q = q / length
        object.__setattr__(self, "quaternion", q)

    @checked
    def __matmul__(self, other: "Pose") -> "Pose":
        turned = rotate(self._rows, _entries(other.position))
        q = multiply(_entries(self.quaternion), _entries(other.quaternion))
        return Pose(_joined(add(_entries(self.position), turned)), _joined(q))

    @property
    def _parts(self) -> tuple[Numbers, Numbers]:
        return self.position, self.quaternion

    @property
    def _rows(self) -> Any:
        return rotation(_entries(self.quaternion))

    def inverse(self) -> "Pose":
        """Return `T⁻¹`, the pose of W seen from B: `(-Rᵀ p, quat*)`."""
        back = rotate_back(self._rows, _entries(self.position))
        return Pose(-_joined(back), _joined(conjugate(_entries(self.quaternion))))

    def log(self) -> Numbers:
        """Return (6,) `Log T`, linear above angular, m and rad: `Pose.exp` of it is T.

        It is the twist in axes of B that leads in one unit of time from W to B along a screw, as
        Pinocchio's `log6`. The angle is at most π.
        """
        return _call(functions.logarithm_fun(), *self._parts)[0]

    @classmethod
    def exp(cls, twist: Any) -> "Pose":
        """Return `Exp(twist)`, the inverse of `log`.

        Args:
            twist: (6,) linear above angular, m and rad; or an expression.

        Raises:
            ShapeError: a wrong shape, NaN or infinity.
        """
        return cls(*_call(functions.exponential_fun(), _column("twist", twist, 6)))

    @checked
    def interpolate(self, other: "Pose", s: Any) -> "Pose":
        """Return the pose at the share s of the way: a straight line, a turn about one axis.

        A screw is `T @ Pose.exp(s * (T.inverse() @ other).log())`.

        Args:
            other: where s = 1; it turns by π at most, on the shorter way.
            s: a number, which may lie outside 0 to 1, or an expression.

        Raises:
            ShapeError: s is no finite number.
        """
        share = _column("s", s if isinstance(s, Expression) else [real_array("s", s)], 1)
        return Pose(*_call(functions.interpolation_fun(), *self._parts, *other._parts, share))

    def act(self, points: Any) -> Numbers:
        """Return `p + R x` of points given in B.

        Args:
            points: (3,) or (n, 3), m; an expression is (3, 1) or (n, 3).

        Raises:
            ShapeError: another shape.
        """
        x = points if isinstance(points, Expression) else real_array("points", points)
        if x.shape not in {(3,), (3, 1)} and (len(x.shape) != 2 or x.shape[1] != 3):
            raise ShapeError(f"points has shape {x.shape}, expected (3,) or (n, 3)")
        columns = x if x.shape in {(3,), (3, 1)} else x.T
        p = (
            self.position
            if len(columns.shape) == 1
            else _as_column(self.position, columns.shape[1])
        )
        moved = self.rotation_matrix @ columns + p
        return moved if columns is x else moved.T

    @property
    def rotation_matrix(self) -> Numbers:
        """(3, 3) R, whose columns are the axes of B in W: MuJoCo's `xmat`."""
        if isinstance(self.quaternion, np.ndarray):
            return np.array(self._rows)
        return ca.vertcat(*(ca.horzcat(*row) for row in self._rows))

    @property
    def matrix(self) -> Numbers:
        """(4, 4) `[R p; 0 1]`."""
        R, p = self.rotation_matrix, self.position
        if isinstance(R, np.ndarray) and isinstance(p, np.ndarray):
            return np.vstack([np.column_stack([R, p]), [0.0, 0.0, 0.0, 1.0]])
        return ca.vertcat(ca.horzcat(R, p), ca.DM([[0.0, 0.0, 0.0, 1.0]]))

    @property
    def qpos(self) -> Numbers:
        """(7,) position and quaternion: `qpos` of a free joint in MuJoCo."""
        if isinstance(self.position, np.ndarray) and isinstance(self.quaternion, np.ndarray):
            return np.concatenate(self._parts)
        return ca.vertcat(self.position, self.quaternion)

    @classmethod
    @checked
    def from_qpos(cls, qpos: ArrayLike) -> "Pose":
        """Return the pose of a free joint from its seven entries of MuJoCo's `qpos`.

        Raises:
            ShapeError: a wrong shape, NaN or infinity.
            ProblemError: a quaternion of length zero.
        """
        values = column("qpos", qpos, 7)
        return cls(values[:3], values[3:])

    @classmethod
    @checked
    def from_matrix(cls, matrix: ArrayLike) -> "Pose":
        """Return the pose of a homogeneous matrix (4, 4), `[R p; 0 1]`.

        Raises:
            ShapeError: a wrong shape, NaN or infinity.
            ProblemError: no rotation, or another last row.
        """
        T = matrix_of("matrix", matrix, (4, 4))
        if np.abs(T[3] - [0.0, 0.0, 0.0, 1.0]).max() > ORTHONORMAL:
            raise ProblemError(f"the last row of the matrix is {T[3]}; expected 0 0 0 1")
        return cls.from_xmat(T[:3, 3], T[:3, :3])

    @classmethod
    @checked
    def from_xmat(cls, xpos: ArrayLike, xmat: ArrayLike) -> "Pose":
        """Return the pose of `xpos` and `xmat` of MuJoCo's data: of a body, a geom or a site.

        Args:
            xpos: (3,) m.
            xmat: (9,) or (3, 3) rotation, by rows.

        Raises:
            ShapeError: a wrong shape, NaN or infinity.
            ProblemError: no rotation.
        """
        entries = real_array("xmat", xmat)
        R = matrix_of("xmat", entries.reshape(3, 3) if entries.shape == (9,) else entries, (3, 3))
        apart = float(np.abs(R.T @ R - np.eye(3)).max())
        if apart > ORTHONORMAL or np.linalg.det(R) < 0:
            raise ProblemError(
                f"xmat is no rotation: Rᵀ R differs from the identity by {apart:.3g}, its "
                f"determinant is {np.linalg.det(R):.3g}; expected columns that are unit, "
                "orthogonal and right-handed"
            )
        return cls(xpos, _call(functions.quaternion_fun(), R)[0])

    @classmethod
    def from_rotation(cls, position: Any, rotation: Any) -> "Pose":
        """Return the pose of a position (3,) and one `scipy.spatial.transform.Rotation`.

        Raises:
            ShapeError: a wrong shape, or several rotations.
            ProblemError: no rotation of SciPy.
        """
        quaternion = _attribute(rotation, "as_quat", "a scipy.spatial.transform.Rotation")()
        return cls(position, np.roll(column("as_quat()", quaternion, 4), 1))

    @classmethod
    def from_rigid_transform(cls, transform: Any) -> "Pose":
        """Return the pose of one `scipy.spatial.transform.RigidTransform`.

        Raises:
            ShapeError: several transforms.
            ProblemError: no transform of SciPy.
        """
        kind = "a scipy.spatial.transform.RigidTransform"
        return cls.from_matrix(_attribute(transform, "as_matrix", kind)())

    @classmethod
    def from_se3(cls, placement: Any) -> "Pose":
        """Return the pose of a `pinocchio.SE3`, or of what has `translation` and `rotation`.

        Raises:
            ShapeError: a wrong shape.
            ProblemError: no placement, or no rotation in it.
        """
        kind = "a pinocchio.SE3"
        R = _attribute(placement, "rotation", kind)
        return cls.from_xmat(_attribute(placement, "translation", kind), R)

    def to_rotation(self) -> Any:
        """Return the orientation as a `scipy.spatial.transform.Rotation`.

        Raises:
            ProblemError: a pose of expressions.
        """
        from scipy.spatial.transform import Rotation

        return Rotation.from_quat(self._numbers[3:], scalar_first=True)

    def to_rigid_transform(self) -> Any:
        """Return a `scipy.spatial.transform.RigidTransform`.

        Raises:
            ProblemError: a pose of expressions.
            MissingExtraError: SciPy is older than 1.16, which has it first.
        """
        from scipy.spatial import transform

        if not hasattr(transform, "RigidTransform"):
            raise MissingExtraError(
                "this SciPy has no RigidTransform; it is in 1.16: pip install 'scipy>=1.16'"
            )
        return transform.RigidTransform.from_components(self._numbers[:3], self.to_rotation())

    def to_se3(self) -> Any:
        """Return a `pinocchio.SE3`.

        Raises:
            ProblemError: a pose of expressions.
            MissingExtraError: Pinocchio is not installed.
        """
        try:
            import pinocchio
        except ImportError as error:
            raise MissingExtraError("to_se3 needs Pinocchio: pip install pin") from error
        q = self._numbers[3:]
        return pinocchio.SE3(pinocchio.Quaternion(*q.tolist()).matrix(), self._numbers[:3])

    @property
    def _numbers(self) -> Array:
        values = self.qpos
        if not isinstance(values, np.ndarray):
            raise ProblemError("the pose holds expressions; expected numbers")
        return values


def _column(name: str, value: object, size: int) -> Numbers:
    """Return numbers (size,), or an expression (size, 1)."""
    if not isinstance(value, Expression):
        return column(name, value, size)  # type: ignore[arg-type]  # it checks what it is
    if value.shape != (size, 1):
        raise ShapeError(f"{name} has shape {value.shape}, expected ({size}, 1)")
    return value


def _entries(values: Any) -> Any:
    """Return the entries of a column, numbers as Python's own."""
    return tuple(values.tolist() if isinstance(values, np.ndarray) else ca.vertsplit(values))


def _joined(entries: Sequence[Any]) -> Any:
    """Return a column of these entries: an array, unless one is an expression."""
    if any(isinstance(each, Expression) for each in entries):
        return ca.densify(ca.vertcat(*entries))
    return np.array(entries)


def _as_column(p: Any, count: int) -> Any:
    """Return a position as `count` equal columns (3, count)."""
    if isinstance(p, np.ndarray):
        return np.tile(p[:, None], count)
    return ca.repmat(p, 1, count)


def _call(function: ca.Function, *arguments: Any) -> list[Any]:
    """Return the outputs of a Function: expressions where an argument is one, else arrays."""
    inputs: list[Any] = [a if isinstance(a, Expression) else ca.DM(a) for a in arguments]
    outputs = function.call(inputs)
    return [x if isinstance(x, Expression) else np.array(x).ravel() for x in outputs]


def _attribute(value: object, name: str, kind: str) -> Any:
    found = getattr(value, name, None)
    if found is None:
        raise ProblemError(f"a {type(value).__name__} has no '{name}'; expected {kind}")
    return found
