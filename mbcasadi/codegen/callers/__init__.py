"""What others need to call an export: C++, MuJoCo, FMI."""
