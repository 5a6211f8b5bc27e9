//! Settings of a card beside its flow rules.

use crate::error::Error;
use crate::log;
use crate::port::Port;
use crate::sys;
use steer::Setup;

/// Largest DDP profile read, in bytes; those published have some hundred KiB.
const PROFILE_MAX: u64 = 16 << 20;

impl Port {
    /// Does what must be done before or beside flow rules. The port stands still meanwhile where its driver asks for it,
    /// so this is for ports whose queues nobody has taken yet.
    ///
    /// # Errors
    /// [`Error::Device`] with the driver's words, or why there is nothing to be done.
    pub fn set(&mut self, setup: &Setup) -> Result<(), Error> {
        match setup {
            Setup::NoDefaultRss => self.set_hash(None, 0),
            Setup::NothingKnownRss => self.set_hash(None, sys::ANCHORLINE_RSS_L2_PAYLOAD),
            Setup::Key(key) => {
                let length = usize::from(self.capabilities().hash_key_bytes);
                let key = key.get(..length).filter(|key| !key.is_empty());
                let key = key.ok_or_else(|| self.refuses("given a key", "it takes none of ours"))?;
                self.set_hash(Some(key), 0)
            }
            Setup::Table(queues) => self.set_table(*queues, *queues),
            Setup::Profile(path) => self.load_profile(path),
            Setup::FlowType { pctype, flow_type } => self.control("given a flow type", |port| {
                // SAFETY: the port is open, so the EAL runs; the lock is held; the driver checks the numbers.
                unsafe { sys::anchorline_i40e_flow_type(port, *pctype, u16::from(*flow_type)) }
            }),
            Setup::HashWords { pctype, words } => self.stopped("told what to hash", |port| {
                // SAFETY: as above; the words live through the call.
                unsafe { sys::anchorline_i40e_hash_words(port, *pctype, words.as_ptr(), words.len() as u32) }
            }),
        }
    }

    /// The hash a port starts with: addresses and ports of the outer headers, as far as it can, and its own key.
    ///
    /// # Errors
    /// [`Error::Device`] with the driver's words.
    pub fn set_usual_hash(&mut self) -> Result<(), Error> {
        self.set_hash(None, self.capabilities().rss.bits & sys::ANCHORLINE_RSS_USUAL)
    }

    /// The table from hash to queue: entry `i` leads to queue `i % period % queues`.
    ///
    /// # Errors
    /// [`Error::Device`] with the driver's words, or that there is no table.
    pub fn set_table(&mut self, period: u16, queues: u16) -> Result<(), Error> {
        let entries = self.capabilities().rss_table_size;
        self.control("given a table of queues", |port| {
            // SAFETY: the port is open, so the EAL runs; the lock is held; the shim checks the numbers.
            unsafe { sys::anchorline_rss_table(port, entries, period, queues) }
        })
    }

    fn set_hash(&mut self, key: Option<&[u8]>, types: u64) -> Result<(), Error> {
        // DPDK takes the key for writing and does not write it.
        let mut key = key.map(<[u8]>::to_vec).unwrap_or_default();
        let length = u8::try_from(key.len()).unwrap_or(u8::MAX);
        let pointer = if key.is_empty() { std::ptr::null_mut() } else { key.as_mut_ptr() };
        self.control("given its hash", |port| {
            // SAFETY: the port is open, so the EAL runs; the lock is held; the key is null or `length` octets long and
            // lives through the call.
            unsafe { sys::anchorline_rss_update(port, pointer, length, types) }
        })
    }

    /// Teaches the card what the profile in a file knows (DDP).
    fn load_profile(&mut self, path: &str) -> Result<(), Error> {
        const ACTION: &str = "taught a profile";
        let unreadable = |why: String| format!("{path} cannot be read ({why})");
        let length = std::fs::metadata(path).map(|file| file.len());
        let length = length.map_err(|error| self.refuses(ACTION, &unreadable(error.to_string())))?;
        if length > PROFILE_MAX {
            return Err(self.refuses(ACTION, &unreadable(format!("{length} bytes are no profile"))));
        }
        let read = std::fs::read(path);
        let mut data = read.map_err(|error| self.refuses(ACTION, &unreadable(error.to_string())))?;
        let size = u32::try_from(data.len()).unwrap_or(u32::MAX);
        self.stopped(ACTION, |port| {
            // SAFETY: the port is open, so the EAL runs; the lock is held; the data lives through the call and is `size`
            // octets long. The driver checks what it says of itself.
            unsafe { sys::anchorline_i40e_profile(port, data.as_mut_ptr(), size) }
        })
    }

    fn control(&self, action: &'static str, call: impl FnOnce(u16) -> i32) -> Result<(), Error> {
        let (status, log) = self.with_lock(call);
        match status {
            0 => Ok(()),
            error if error == -libc::ENOSYS || error == -libc::ENOTSUP => {
                Err(self.refuses(action, "its driver cannot"))
            }
            error => Err(self.refuses(action, &log::reason(&log, error))),
        }
    }

    /// The same while the port stands still.
    fn stopped(&mut self, action: &'static str, call: impl FnOnce(u16) -> i32) -> Result<(), Error> {
        if !self.has_its_queues() {
            return Err(self.refuses(action, "workers have its queues: it cannot stand still"));
        }
        self.stop()?;
        let done = self.control(action, call);
        self.go_on().and(done)
    }

    fn refuses(&self, action: &'static str, reason: &str) -> Error {
        Error::Device { device: self.device().to_owned(), action, reason: reason.to_owned() }
    }
}
