//! Bits to the slots of a layout.

use super::layout::{Length, Node};
use super::types::ByteOrder;

/// Reason why a packet cannot be decoded: it has fewer bits than its fields, or a value that no field can have.
#[derive(Debug)]
pub(super) enum Broken {
    /// A field goes past the end.
    Ends,
    /// A variant has no option for the value of its tag.
    NoOption(i64),
}

/// Values of the fields that were decoded last.
pub(super) struct Slots {
    pub numbers: Vec<i64>,
    /// Begin and end of texts in the packet, in bytes.
    pub texts: Vec<(usize, usize)>,
    /// Ticks of the clock.
    pub clock: u64,
}

/// Place in a packet.
pub(super) struct Bits<'a> {
    pub data: &'a [u8],
    /// Next bit.
    pub at: u64,
    /// Bit after the last one.
    pub end: u64,
}

impl Bits<'_> {
    /// Decodes a node into its slots.
    pub fn decode(&mut self, node: &Node, slots: &mut Slots) -> Result<(), Broken> {
        match node {
            Node::Number { size, align, is_signed, order, slot, is_clock } => {
                self.align(*align)?;
                let bits = self.number(*size, *order)?;
                if *is_clock {
                    advance(&mut slots.clock, bits, *size);
                }
                let shift = 64 - size;
                slots.numbers[*slot] = if *is_signed { ((bits << shift) as i64) >> shift } else { bits as i64 };
            }
            Node::Skipped { size, align } => {
                self.align(*align)?;
                self.skip(u64::from(*size))?;
            }
            Node::Text { slot } => {
                self.align(8)?;
                let start = (self.at / 8) as usize;
                let end = (self.end / 8) as usize;
                let length = memchr::memchr(0, self.data.get(start..end).ok_or(Broken::Ends)?).ok_or(Broken::Ends)?;
                slots.texts[*slot] = (start, start + length);
                self.at += 8 * (length as u64 + 1);
            }
            Node::Structure { align, fields } => {
                self.align(*align)?;
                for field in fields {
                    self.decode(field, slots)?;
                }
            }
            Node::Variant { tag, ranges, options } => {
                let value = slots.numbers[*tag];
                let range = ranges.iter().find(|(from, to, _)| (*from..=*to).contains(&value));
                let (.., option) = range.ok_or(Broken::NoOption(value))?;
                self.decode(&options[*option], slots)?;
            }
            Node::Array { of, length, text } => {
                let length = match length {
                    Length::Fixed(length) => *length,
                    Length::Slot(slot) => slots.numbers[*slot] as u64,
                };
                if let Node::Number { size: 8, align, .. } = **of {
                    self.align(align)?;
                    if self.at.is_multiple_of(8) && align <= 8 {
                        let start = self.at / 8;
                        self.skip(length.checked_mul(8).ok_or(Broken::Ends)?)?;
                        if let Some(slot) = text {
                            let bytes = &self.data[start as usize..(start + length) as usize];
                            let used = memchr::memchr(0, bytes).unwrap_or(bytes.len());
                            slots.texts[*slot] = (start as usize, start as usize + used);
                        }
                        return Ok(());
                    }
                }
                for _ in 0..length {
                    let before = self.at;
                    self.decode(of, slots)?;
                    // Elements without a size: as many as one likes.
                    if self.at == before {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn align(&mut self, align: u32) -> Result<(), Broken> {
        let mask = u64::from(align) - 1;
        let at = self.at.checked_add(mask).ok_or(Broken::Ends)? & !mask;
        self.skip(at - self.at)
    }

    fn skip(&mut self, bits: u64) -> Result<(), Broken> {
        let at = self.at.checked_add(bits).filter(|at| *at <= self.end).ok_or(Broken::Ends)?;
        self.at = at;
        Ok(())
    }

    /// Reads a number of up to 64 bits from wherever it begins.
    fn number(&mut self, size: u32, order: ByteOrder) -> Result<u64, Broken> {
        let from = self.at;
        self.skip(u64::from(size))?;
        let start = (from / 8) as usize;
        if from.is_multiple_of(8) && size.is_multiple_of(8) {
            let bytes = &self.data[start..start + (size / 8) as usize];
            let join = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
            return Ok(match order {
                ByteOrder::Little => match <[u8; 4]>::try_from(bytes) {
                    Ok(four) => u64::from(u32::from_le_bytes(four)),
                    Err(_) => match <[u8; 8]>::try_from(bytes) {
                        Ok(eight) => u64::from_le_bytes(eight),
                        Err(_) => bytes.iter().rev().fold(0, join),
                    },
                },
                ByteOrder::Big => bytes.iter().fold(0, join),
            });
        }
        let mut value = 0u128;
        let last = ((self.at - 1) / 8) as usize;
        let bytes = &self.data[start..=last];
        let offset = (from % 8) as u32;
        let mask = (1u128 << size) - 1;
        match order {
            ByteOrder::Little => {
                for byte in bytes.iter().rev() {
                    value = value << 8 | u128::from(*byte);
                }
                value >>= offset;
            }
            ByteOrder::Big => {
                for byte in bytes {
                    value = value << 8 | u128::from(*byte);
                }
                value >>= 8 * bytes.len() as u32 - offset - size;
            }
        }
        Ok((value & mask) as u64)
    }
}

/// Moves a clock to a date of which the lower bits are known: the first such date that is not before the clock.
fn advance(clock: &mut u64, bits: u64, size: u32) {
    if size >= 64 {
        *clock = bits;
        return;
    }
    let step = 1u64 << size;
    let mask = step - 1;
    let date = *clock & !mask | bits;
    *clock = if date < *clock { date.wrapping_add(step) } else { date };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(data: &[u8], from: u64, size: u32, order: ByteOrder) -> u64 {
        Bits { data, at: from, end: 8 * data.len() as u64 }.number(size, order).unwrap()
    }

    #[test]
    fn numbers_of_any_size_and_place() {
        let data = [0b1010_0101, 0xf0, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf1];
        for (from, size) in [(0, 5), (5, 27), (3, 64), (7, 1), (1, 63), (8, 24), (13, 33)] {
            let bit = |at: u64, order| match order {
                ByteOrder::Little => data[(at / 8) as usize] >> (at % 8) & 1,
                ByteOrder::Big => data[(at / 8) as usize] >> (7 - at % 8) & 1,
            };
            let little = (0..size).map(|at| u64::from(bit(from + at, ByteOrder::Little)) << at).sum::<u64>();
            let big = (0..size).fold(0, |value, at| value << 1 | u64::from(bit(from + at, ByteOrder::Big)));
            assert_eq!(bits(&data, from, size as u32, ByteOrder::Little), little, "{from} {size}");
            assert_eq!(bits(&data, from, size as u32, ByteOrder::Big), big, "{from} {size}");
        }
        assert_eq!(bits(&data, 16, 32, ByteOrder::Little), 0x7856_3412);
        assert_eq!(bits(&data, 16, 32, ByteOrder::Big), 0x1234_5678);
    }

    #[test]
    fn a_short_clock_goes_on_where_it_wraps() {
        let mut clock = 0x1_f0;
        advance(&mut clock, 0xf8, 8);
        assert_eq!(clock, 0x1_f8);
        advance(&mut clock, 0x05, 8);
        assert_eq!(clock, 0x2_05);
        advance(&mut clock, 7, 64);
        assert_eq!(clock, 7);
    }
}
