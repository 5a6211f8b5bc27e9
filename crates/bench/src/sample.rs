//! One packet in 1,024 is compared, byte by byte, with what the path must make of it.

use anyhow::bail;
use dpdk::Mbuf;
use packet::Buffer;
use std::collections::HashMap;

/// One packet in so many is compared.
pub(crate) const ONE_IN: u64 = 1_024;

/// What must come out: a slow reference of the path.
pub(crate) trait Expectation {
    /// The frames that must leave, each with its port, for one that enters at `port`.
    fn expect(&mut self, port: usize, frame: &[u8]) -> Vec<(usize, Vec<u8>)>;
}

/// A packet as it went in.
#[derive(Debug)]
struct Sample {
    port: usize,
    frame: Vec<u8>,
}

/// Keeps copies of some packets that go in, and looks at them when they come out.
pub(crate) struct Sampler {
    expectation: Box<dyn Expectation>,
    /// By what names the packet.
    waiting: HashMap<u64, Sample>,
    seen: u64,
    compared: u64,
}

impl Sampler {
    pub(crate) fn new(expectation: Box<dyn Expectation>) -> Self {
        Self { expectation, waiting: HashMap::new(), seen: 0, compared: 0 }
    }

    /// Packets compared so far; all were right.
    pub(crate) fn compared(&self) -> u64 {
        self.compared
    }

    /// A packet goes in at `port`: the first, and then one in 1,024, is remembered.
    pub(crate) fn goes_in(&mut self, port: usize, mbuf: &Mbuf) {
        if self.seen.is_multiple_of(ONE_IN) {
            self.keep(identity(mbuf), port, mbuf.data());
        }
        self.seen += 1;
    }

    /// Remembers a packet under a name of the caller's.
    pub(crate) fn keep(&mut self, name: u64, port: usize, frame: &[u8]) {
        self.waiting.insert(name, Sample { port, frame: frame.to_vec() });
    }

    /// A packet came out at `port`.
    ///
    /// # Errors
    /// It is not what it should be.
    pub(crate) fn comes_out(&mut self, port: usize, mbuf: &Mbuf) -> anyhow::Result<()> {
        self.compare(identity(mbuf), port, mbuf.data())
    }

    /// A packet of this name came out at `port`; one that was not remembered is right.
    ///
    /// # Errors
    /// It is not what it should be.
    pub(crate) fn compare(&mut self, name: u64, port: usize, frame: &[u8]) -> anyhow::Result<()> {
        let Some(sample) = self.waiting.remove(&name) else { return Ok(()) };
        let expected = self.expectation.expect(sample.port, &sample.frame);
        self.compared += 1;
        match expected.as_slice() {
            [(at, bytes)] if *at == port && bytes == frame => Ok(()),
            expected => bail!("a packet came out wrong: {}", difference(expected, port, frame)),
        }
    }

    /// What has not come out is lost, or was to be dropped; its loss is the books' business.
    pub(crate) fn forget(&mut self) {
        self.waiting.clear();
    }
}

/// A packet's memory does not move on its way through a worker.
fn identity(mbuf: &Mbuf) -> u64 {
    (mbuf.data().as_ptr() as usize).wrapping_sub(mbuf.headroom_bytes()) as u64
}

fn difference(expected: &[(usize, Vec<u8>)], port: usize, frame: &[u8]) -> String {
    let [(at, bytes)] = expected else {
        return format!("{} packets were expected instead of one", expected.len());
    };
    if *at != port {
        return format!("it left port {port} instead of {at}");
    }
    let first = bytes.iter().zip(frame).position(|(a, b)| a != b);
    let first = first.unwrap_or(bytes.len().min(frame.len()));
    format!(
        "byte {first} is {:02x?} instead of {:02x?}; it has {} bytes, {} were expected",
        frame.get(first),
        bytes.get(first),
        frame.len(),
        bytes.len(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything leaves the other port unchanged.
    struct Mirror;

    impl Expectation for Mirror {
        fn expect(&mut self, port: usize, frame: &[u8]) -> Vec<(usize, Vec<u8>)> {
            vec![(1 - port, frame.to_vec())]
        }
    }

    fn compare(port: usize, frame: &[u8]) -> Result<u64, String> {
        let mut sampler = Sampler::new(Box::new(Mirror));
        sampler.keep(7, 0, &[1, 2, 3]);
        sampler.compare(8, 0, &[9]).unwrap();
        sampler.compare(7, port, frame).map_err(|error| error.to_string())?;
        Ok(sampler.compared())
    }

    #[test]
    fn what_is_right_is_counted_and_what_is_wrong_is_named() {
        assert_eq!(compare(1, &[1, 2, 3]), Ok(1));
        for (port, frame, expected) in [
            (0, &[1, 2, 3][..], "left port 0 instead of 1"),
            (1, &[1, 9, 3], "byte 1 is Some(09) instead of Some(02)"),
            (1, &[1, 2], "byte 2 is None instead of Some(03); it has 2 bytes, 3 were expected"),
        ] {
            let error = compare(port, frame).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
