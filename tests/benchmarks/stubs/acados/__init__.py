"""A stub of the module of acados, without its libraries."""

import os

DIR = TEMPLATE_DIR = LIB_DIR = os.environ["ACADOS_STUB"]
