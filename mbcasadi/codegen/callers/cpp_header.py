def header_hpp(law): return ""
