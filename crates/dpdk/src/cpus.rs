//! CPU affinity of the calling thread.

use std::mem::{MaybeUninit, size_of};

/// The CPUs the calling thread may run on; CPU 0 where the kernel does not say.
pub(crate) fn allowed() -> Vec<usize> {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the set is as large as said, and valid when zeroed.
    let set = unsafe {
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr());
        set.assume_init()
    };
    let limit = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
    // SAFETY: every CPU asked for is below the set's size.
    let cpus: Vec<usize> = (0..limit).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect();
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Binds the calling thread; CPUs that do not exist are passed over.
pub(crate) fn bind(cpus: &[usize]) {
    let limit = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
    // SAFETY: a zeroed set is the empty one, every CPU put in is below its size, and it is as large as said.
    unsafe {
        let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed().assume_init();
        cpus.iter().filter(|cpu| **cpu < limit).for_each(|cpu| libc::CPU_SET(*cpu, &mut set));
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}
