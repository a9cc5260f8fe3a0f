"""Why a problem has no solution, and what limits cost."""
