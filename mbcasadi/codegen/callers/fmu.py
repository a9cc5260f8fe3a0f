def fmu_archive(law, contents, example, report): return b""
