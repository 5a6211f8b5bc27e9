//! An input: in what world, and what comes there, frame by frame.

/// Octets in front of a frame: its mood, and its length.
const HEAD: usize = 3;

/// What an input says.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Which of the random worlds.
    pub world: u8,
    /// What is changed in it.
    pub changes: u8,
    pub steps: Vec<Step>,
}

/// A frame, or where it is empty a change of the rules.
#[derive(Clone, Debug)]
pub struct Step {
    /// Bits 0 to 2: the port. Bit 3: it comes in one vector with the next. Bits 4 to 6: how much later than the one before.
    pub mood: u8,
    pub frame: Vec<u8>,
}

impl Step {
    pub const WITH_THE_NEXT: u8 = 8;

    pub fn gap_ns(&self) -> u64 {
        [0, 0, 1_000, 1_000_000, 20_000_000, 300_000_000, 1_100_000_000, 60_000_000_000]
            [usize::from(self.mood >> 4 & 7)]
    }
}

impl Script {
    pub fn read(bytes: &[u8]) -> Self {
        let [world, changes, rest @ ..] = bytes else { return Self::default() };
        let (mut rest, mut steps) = (rest, Vec::new());
        while let [mood, high, low, after @ ..] = rest {
            let length = usize::from(u16::from_be_bytes([*high, *low])).min(after.len());
            let (frame, following) = after.split_at(length);
            steps.push(Step { mood: *mood, frame: frame.to_vec() });
            rest = following;
        }
        Self { world: *world, changes: *changes, steps }
    }

    pub fn write(&self) -> Vec<u8> {
        let mut bytes =
            Vec::with_capacity(2 + self.steps.iter().map(|step| HEAD + step.frame.len()).sum::<usize>());
        bytes.extend([self.world, self.changes]);
        for Step { mood, frame } in &self.steps {
            let [high, low] = (frame.len() as u16).to_be_bytes();
            bytes.extend([*mood, high, low]);
            bytes.extend(frame);
        }
        bytes
    }
}
