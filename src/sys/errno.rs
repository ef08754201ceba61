//! Errors of the kernel, by name.

pub use rustix::io::Errno;

/// Whether it says that this program, or the machine, has no descriptor or memory left: that is no
/// answer about what was asked for.
#[must_use]
pub const fn is_lack(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM)
}

/// The name of an errno as errno(3) spells it, or `None` for a number this table
/// does not know.
///
/// Numbers are those of include/uapi/asm-generic/errno*.h, which x86_64 and aarch64 share.
#[must_use]
pub fn name(errno: Errno) -> Option<&'static str> {
    let number = usize::try_from(errno.raw_os_error()).ok()?;
    let name = NAMES.split_ascii_whitespace().nth(number)?;
    Some(name).filter(|&name| name != "-")
}

/// The name, or `E?` for a number the table does not know.
#[must_use]
pub fn name_or_unknown(errno: Errno) -> &'static str {
    name(errno).unwrap_or("E?")
}

/// By number, from 0 on; `-` where there is none. One text: a table of slices would be
/// twice its size.
const NAMES: &str = "\
    - EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM \
    EACCES EFAULT ENOTBLK EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE \
    ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK \
    ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY ELOOP - ENOMSG EIDRM ECHRNG EL2NSYNC EL3HLT \
    EL3RST ELNRNG EUNATCH ENOCSI EL2HLT EBADE EBADR EXFULL ENOANO EBADRQC EBADSLT - \
    EBFONT ENOSTR ENODATA ETIME ENOSR ENONET ENOPKG EREMOTE ENOLINK EADV ESRMNT ECOMM \
    EPROTO EMULTIHOP EDOTDOT EBADMSG EOVERFLOW ENOTUNIQ EBADFD EREMCHG ELIBACC ELIBBAD \
    ELIBSCN ELIBMAX ELIBEXEC EILSEQ ERESTART ESTRPIPE EUSERS ENOTSOCK EDESTADDRREQ \
    EMSGSIZE EPROTOTYPE ENOPROTOOPT EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP \
    EPFNOSUPPORT EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH ENETRESET \
    ECONNABORTED ECONNRESET ENOBUFS EISCONN ENOTCONN ESHUTDOWN ETOOMANYREFS ETIMEDOUT \
    ECONNREFUSED EHOSTDOWN EHOSTUNREACH EALREADY EINPROGRESS ESTALE EUCLEAN ENOTNAM \
    ENAVAIL EISNAM EREMOTEIO EDQUOT ENOMEDIUM EMEDIUMTYPE ECANCELED ENOKEY EKEYEXPIRED \
    EKEYREVOKED EKEYREJECTED EOWNERDEAD ENOTRECOVERABLE ERFKILL EHWPOISON";

#[cfg(test)]
mod tests {
    use super::*;

    /// Each line against rustix' constant, which comes from the kernel's own headers.
    #[test]
    fn names_stand_at_their_numbers() {
        let known = [
            (Errno::PERM, "EPERM"),
            (Errno::SRCH, "ESRCH"),
            (Errno::IO, "EIO"),
            (Errno::FAULT, "EFAULT"),
            (Errno::INVAL, "EINVAL"),
            (Errno::PIPE, "EPIPE"),
            (Errno::NOSYS, "ENOSYS"),
            (Errno::LOOP, "ELOOP"),
            (Errno::NODATA, "ENODATA"),
            (Errno::OVERFLOW, "EOVERFLOW"),
            (Errno::OPNOTSUPP, "EOPNOTSUPP"),
            (Errno::TIMEDOUT, "ETIMEDOUT"),
            (Errno::CANCELED, "ECANCELED"),
            (Errno::HWPOISON, "EHWPOISON"),
        ];
        for (errno, want) in known {
            assert_eq!(name(errno), Some(want));
        }
    }

    #[test]
    fn an_unknown_number_has_no_name() {
        for number in [41, 58, 134, 4094] {
            assert_eq!(name(Errno::from_raw_os_error(number)), None);
        }
    }
}
