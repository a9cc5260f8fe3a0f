"""Random inverse dynamics by the ten thousand, judged by computations that share no code with it.

cd tests; python -m campaign --problems 100000 --workers 2
"""
