"""Every public function and method, given what its arguments are not.

`calls_*.py` hold one valid call of each; `driver.py` makes its arguments wrong, one at a time.
"""
