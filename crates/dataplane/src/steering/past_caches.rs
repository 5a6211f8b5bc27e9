//! Records written past the caches, for another CPU to read. A line that is written as usual has to be fetched first from whoever has
//! read it, and a ring's have been read. An unsafe room of this crate; its invariants: every value is moved once and whole, and what
//! was written is visible to all before the slots are shown to anybody.
#![allow(unsafe_code)]

use rtrb::chunks::WriteChunkUninit;
use std::mem::MaybeUninit;

/// Bytes that are written at once, so that nobody asks for what was there before.
const LINE: usize = 64;

/// Moves as many values as the chunk has slots, and there are, into it, the first ones first; returns how many.
pub(super) fn fill<T>(mut chunk: WriteChunkUninit<'_, T>, values: &mut Vec<T>) -> usize {
    const { assert!(size_of::<T>().is_multiple_of(LINE) && align_of::<T>() >= LINE, "whole lines") };
    let count = values.len().min(chunk.len());
    let rest = values.len() - count;
    let from = values.as_mut_ptr();
    // SAFETY: 0 is not more than there are. Those that were there are leaked from here on, unless they are moved.
    unsafe { values.set_len(0) };
    let (first, second) = chunk.as_mut_slices();
    for (at, slot) in first.iter_mut().chain(second).take(count).enumerate() {
        // SAFETY: less than `count` from the front is within what the vector held, and each is moved once, to a slot of its own.
        unsafe { write(from.add(at), slot) };
    }
    show();
    // SAFETY: the first `count` have been moved out, and `rest` others stand behind them; all of those are there again then. The
    // first `count` slots of the chunk have been written.
    unsafe {
        from.copy_from(from.add(count), rest);
        values.set_len(rest);
        chunk.commit(count);
    }
    count
}

/// Moves a value into a slot.
///
/// # Safety
/// `from` is a value, which is not used again.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn write<T>(from: *const T, slot: &mut MaybeUninit<T>) {
    let to = slot.as_mut_ptr();
    for line in (0..size_of::<T>()).step_by(LINE) {
        // SAFETY: both are of whole lines and begin with one (`fill` insists), so these are their bytes.
        unsafe {
            std::arch::asm!(
                "movdqa {0}, [{from}]",
                "movdqa {1}, [{from} + 16]",
                "movdqa {2}, [{from} + 32]",
                "movdqa {3}, [{from} + 48]",
                "movntdq [{to}], {0}",
                "movntdq [{to} + 16], {1}",
                "movntdq [{to} + 32], {2}",
                "movntdq [{to} + 48], {3}",
                out(xmm_reg) _, out(xmm_reg) _, out(xmm_reg) _, out(xmm_reg) _,
                from = in(reg) from.byte_add(line), to = in(reg) to.byte_add(line),
                options(nostack, preserves_flags),
            );
        }
    }
}

/// The same in the usual way.
///
/// # Safety
/// As above.
#[cfg(any(not(target_arch = "x86_64"), miri))]
unsafe fn write<T>(from: *const T, slot: &mut MaybeUninit<T>) {
    // SAFETY: the caller's value is valid to be read.
    slot.write(unsafe { from.read() });
}

/// Waits until all that was written is visible: such writes come in no order with others.
#[inline(always)]
fn show() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtrb::RingBuffer;

    #[repr(align(64))]
    struct Record(Box<usize>);

    #[test]
    fn values_are_moved_once_in_order_and_those_without_a_slot_stay() {
        let (mut producer, mut consumer) = RingBuffer::new(8);
        let mut values: Vec<Record> = Vec::new();
        let (mut given, mut taken) = (0, 0);
        // The ring's end is met at every place.
        for round in 0..100 {
            while values.len() < 10 {
                values.push(Record(Box::new(given)));
                given += 1;
            }
            let slots = producer.slots();
            let chunk = producer.write_chunk_uninit(slots).unwrap();
            assert_eq!(fill(chunk, &mut values), slots);
            for _ in 0..1 + round % 7 {
                assert_eq!(*consumer.pop().unwrap().0, taken);
                taken += 1;
            }
        }
        assert_eq!(*values[0].0, taken + consumer.slots());
    }

    #[test]
    fn more_slots_than_values_stay_empty() {
        let (mut producer, mut consumer) = RingBuffer::new(8);
        let mut values = vec![Record(Box::new(1)), Record(Box::new(2))];
        assert_eq!(fill(producer.write_chunk_uninit(5).unwrap(), &mut values), 2);
        assert_eq!((consumer.slots(), values.len()), (2, 0));
        assert_eq!([consumer.pop(), consumer.pop()].map(|record| *record.unwrap().0), [1, 2]);
    }
}
