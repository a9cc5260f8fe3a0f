"""Names in the generated C, and those that an export cannot bear.

An export called `x` has files `x.h`, functions `x_init`, macros `X_OK` and a C++ namespace `x`. A
file hides a header of the same name, a function or a macro may be another's, and a macro replaces
the namespace.
"""

import re

from mbcasadi.description.c_names import RESERVED, is_c_name
from mbcasadi.errors import ExportError

KEYWORDS_TEXT = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
constinit continue decltype default delete do double dynamic_cast else enum explicit export extern
false float for friend goto if inline int long main mutable namespace new noexcept not not_eq
nullptr operator or or_eq private protected public register reinterpret_cast requires restrict
return short signed sizeof static static_assert static_cast std struct switch template this
thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using
virtual void volatile wchar_t while xor xor_eq
"""
KEYWORDS = frozenset(KEYWORDS_TEXT.split())
HEADERS_TEXT = """
accctrl aclapi aio alloca arduino arduinoble assert basetsd bcrypt binary byteswap cderr cguid
client combaseapi commctrl commdlg complex conio cpio crtdbg crtdefs crypt ctype dbghelp dde ddeml
debugapi direct dirent dlfcn dlgs dos dpapi eeprom elf endian err errno error ethernet excpt
execinfo expat fcntl features fenv fft fileapi float fmi3functions fmi3functiontypes
fmi3platformtypes fmtmsg fnmatch ftw getopt glob grp guiddef handleapi hardwareserial heapapi
iconv ieeefp ifaddrs imm inaddr intrin inttypes io ioapiset ipaddress iphlpapi iso646 jobapi
ktmtypes langinfo libgen libintl limits link liquidcrystal locale lzexpand malloc math mcx memory
memoryapi minwinbase minwindef mmsystem monetary mqueue msxml mujoco nb30 ncrypt ndbm netdb newlib
nl_types oaidl objbase objidl objidlbase ole2 oleauto oleidl pins_arduino poll poppack print
printable process processenv profileapi propidl prsht psapi pthread pwd qos reason reent regex
regexp resolv rpc rpcdce rpcndr sal sched sd sdkddkver search semaphore server servo servprov
setjmp shadow share shellapi shlobj shlwapi signal softwareserial spawn specstrings spi stdalign
stdarg stdatomic stdbit stdbool stdckdint stddef stdint stdio stdlib stdnoreturn stepper stralign
stream string strings stropts synchapi sysexits syslog tar tchar termio termios tgmath thread
threads time tlhelp32 tone trace ttyent tvout uchar ucontext udp ulimit unistd unknwn urlmon
usbapi utime utmp utmpx vadefs values virtdisk wait wchar wcharacter wctype wifi winapifamily
winbase wincon wincrypt windef windows windowsx winefs winerror wingdi winioctl winnetwk winnls
winnt winperf winreg winscard winsmcrd winsock winsock2 winspool winsvc winuser winver wire wiring
wiring_private wnnc wordexp wow64apiset ws2def ws2tcpip wstring wtypes
"""
HEADERS = frozenset(HEADERS_TEXT.split())
"""In lower case: some systems do not tell `Math.h` from `math.h`."""

MACROS_TEXT = """
abs ABSOLUTE ALTERNATE analogRead analogWrite assert basename bit bitClear bitRead bitSet bitWrite
bool boolean BUFSIZ byte CALLBACK CDECL cdecl CHANGE chx1 cli clrbit cmb1 CMPLX complex CONST
constrain DEFAULT DEG degrees DELETE DIFFERENCE digitalRead digitalWrite DISPLAY ECHO edt1 environ
EOF errno ERROR EULER exception_info EXTERNAL FAILED FALLING FALSE FAR far fd_set frm1 grp1 h_addr
h_errno HALFTONE HIGH highByte howmany huge hyper HZ I ico1 IGNORE imaginary IN INFINITE INFINITY
INPUT INTERFACE interface INTERNAL interrupts isclr isset linux loop LOW lowByte LSBFIRST lst1
MAGIC major makedev map MAX max MIN min minor MSBFIRST NAN NEAR near NOERROR noInterrupts noreturn
NSIG NULL offsetof OPAQUE OPTIONAL OUT OUTPUT PASCAL pascal physadr PI PLANES psh1 PURE quad RAD
rad1 radians random rct1 REGISTERED RELATIVE RGB RISING roundup sbi scr1 sei SERIAL setbit setup
sigmask signgam small sq stc1 stderr stdin stdout STRICT SUCCEEDED TECHNOLOGY TEXT THIS
thread_local TRANSPARENT TRUE tzname UNALIGNED unix va_arg va_copy va_end va_start VOID WIN32
WIN64 WINDING WINNT WINVER word yield
"""
MACROS = frozenset(MACROS_TEXT.split())
FUNCTIONS_TEXT = """
abort abs accept access acos acosh alarm asin asinh assert atan atan2 atanh atexit atof atoi atol
bind bsearch calloc cbrt ceil chdir chmod chown clock close connect copysign cos cosh creat ctime
daemon difftime div drem dup encrypt erf erfc exec exit exp exp2 expm1 fabs fclose fdim feof
fflush finite floor fma fmax fmin fmod fopen fork fprintf fputs fread free frexp fseek fstat fsync
ftell ftruncate fwrite gamma getc getchar getenv getpid gets gmtime hypot ilogb index insque ioctl
isalpha isatty isdigit isfinite isinf islower isnan isnormal isprint isspace isupper j0 j1 jn kill
labs lchown ldexp lgamma link listen llabs llrint llround localtime lockf log log10 log1p log2
logb longjmp lrint lround lseek lstat malloc memchr memcmp memcpy memmove memset mkdir mkfifo
mktime mmap modf mount munmap nanosleep nearbyint nextafter nice open pause perror pipe poll pow
printf profil putc putchar puts qsort raise rand read readlink realloc reboot recv remainder
remove remque remquo rename rewind rindex rint rmdir round scanf select send setenv setjmp
shutdown signal significand sin sinh sleep snprintf socket splice sprintf sqrt srand sscanf stat
strcat strchr strcmp strcpy strlen strtod symlink sync sysinfo system tan tanh tee tempnam tgamma
time times timezone tmpfile tolower toupper trunc truncate umask umount uname ungetc unlink usleep
vfork wait write y0 y1 yn
"""
FUNCTIONS = frozenset(FUNCTIONS_TEXT.split())
BEGINNINGS_TEXT = """
alg_class at cert_chain_opt_in_weak cert_select_has_key_for cert_trust_has_allow_weak
cert_trust_has_auto_update_weak cert_trust_has_weak certsrv_e_signature cmc_fail_pop cmc_status
cmsg_ctrl_enable_strong cmsg_ctrl_verify cnd co_e_async_work co_e_class_create crypt_dont_verify
crypt_verify_context ctl d2derr_scanner d2derr_shader_compile device_type_from_ctl disp_change
dmlerr dmlerr_postmsg dns_error_file_writeback dns_error_nbstat_init dns_error_node_creation
dns_error_wins_init dns_error_zone_creation dns_warning_ptr_create driverspecs drv drvcnf
dxgi_error_restrict_to_output enhmeta eps event_e_all_subscribers event_s_some_subscribers
falloc_fl_no_hide fanotify fast_fail_invalid_fast_fail fnm frs_err_sysvol_is
fwp_e_callout_notification gnu_get_libc gradient_fill_rect hresult idh image_dos image_nt
image_os2 image_scn_cnt image_separate_debug image_vxd ime_cand inet_e_redirect init_once_init
inotify is_text_unicode is_text_unicode_reverse itimer job_object_limit_breakaway
job_object_limit_silent_breakaway keyboard_overrun_make klf_substitute lcs mb
mem_different_image_base method_from_ctl mingw_ddk mingw_has_ddk mk_e_enumeration mm mtx
non_paged_debug nte_bad nte_op nte_validation oss pf_ppc_movemem_64bit printer_status
process_heap_entry psbtn pwr r rcrypt rpc_e_call rpc_e_servercall rpc_e_sys_call rpc_s rpc_s_call
rpc_s_cookie_auth rpc_s_procnum rpc_s_server_too rpc_x_enum_value rtl_run_once_init scard_ctl
scard_e_server_too scard_w_cache_item scode sec_e sec_e_mutual_auth sec_e_security_qos
sec_i_continue_needed_message sem state_system status_dll_init szoid_crl_reason szoid_kp_csp
szoid_pkix_no szoid_postal szoid_privatekey_usage thrd timestamp_status timestamp_verify_context
trust_e_cert tss urlpolicy_authenticate_cleartext urlpolicy_credentials_silent_logon
user_marshal_cb ver vk_oem vp_tv_standard_pal vp_tv_standard_secam vs_ffi w wait wn_function
wsa_wait x x509_crl_reason x509_dss x509_ecc xact_e_tip_connect xact_e_tip_pull xact_s_locally
xstate_avx512_zmm
"""
BEGINNINGS = frozenset(BEGINNINGS_TEXT.split())
"""With `_init`, `_OK`, `_FAILED` and the like behind them they are names of C, POSIX or Windows."""

FAMILIES = re.compile(
    r"(casadi|codegen|daqp|error|fmi3?|inet6|ldp|loops|lq|mj[a-z]{0,2}|posix|pthread)(_|$)",
    re.IGNORECASE,
)
"""How names of the generated C, of what it calls, and errors of Windows begin."""

DEVICES = re.compile(r"con|prn|aux|nul|(com|lpt)\d", re.IGNORECASE)
"""Names of devices on Windows, where no file can bear them."""

TARGETS_TEXT = """
all clean depend edit_cache help install package package_source preinstall rebuild_cache test
"""
TARGETS = frozenset(TARGETS_TEXT.split())
"""Of every build by CMake."""


def meaning(name: str) -> str:
    """Return what an identifier means elsewhere, in words; "" where an export can bear it."""
    lower = name.lower()
    known = (
        (name in KEYWORDS, "a keyword of C or C++"),
        (lower in HEADERS, "a header of C, POSIX, Windows, Arduino or MuJoCo"),
        (name in MACROS, "a macro of C, POSIX, Windows or Arduino"),
        (name in FUNCTIONS, "a function of C or POSIX"),
        (name == name.upper(), "written in capitals only, as macros are"),
        (lower in BEGINNINGS, "how names of C, POSIX or Windows begin"),
        (bool(FAMILIES.match(name)), "how names of the generated C, or of a library, begin"),
        (bool(DEVICES.fullmatch(name)), "a device of Windows"),
        (lower in TARGETS, "a target of CMake"),
    )
    return next((words for is_one, words in known if is_one), "")


def parameter(name: str) -> str:
    """Return the C parameter for a CasADi input or output; different ones for different names.

    Macros have capitals: a parameter in capitals, of more than one letter, gets an underscore.
    """
    taken = name in RESERVED or name in KEYWORDS | MACROS | FUNCTIONS
    is_macro = len(name) > 1 and name == name.upper()
    return f"{name}_" if taken or is_macro or name.endswith("_") else name


def require_identifier(name: str) -> str:
    """Return `name`, or raise `ExportError` where C would refuse it."""
    if not is_c_name(name):
        raise ExportError(
            f"{name!r} cannot name a C function; expected a letter, then letters, digits or "
            "underscores, no word of C or of its library: pass another name="
        )
    return name


def require_export_name(name: str) -> str:
    """Return `name`, or raise `ExportError` where an export cannot bear it: `meaning` says why."""
    if words := meaning(require_identifier(name)):
        raise ExportError(f"{name!r} cannot name a C function: it is {words}; pass another name=")
    return name
