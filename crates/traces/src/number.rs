//! Numbers in bytes, without an allocation.

/// Reads a whole number in decimal, or in hexadecimal after `0x`.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let value = unsigned(digits)?;
    match negative {
        // Addresses use all 64 bits.
        false => Some(value as i64),
        true => i64::try_from(value).ok()?.checked_neg(),
    }
}

/// Reads a whole number without a sign.
pub(crate) fn unsigned(text: &[u8]) -> Option<u64> {
    if let [b'0', b'x' | b'X', digits @ ..] = text {
        return u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    }
    if text.is_empty() {
        return None;
    }
    let mut value = 0u64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// Reads `seconds.fraction` as nanoseconds. Digits after the ninth are cut off.
pub(crate) fn seconds(text: &[u8]) -> Option<u64> {
    let point = memchr::memchr(b'.', text)?;
    let (whole, fraction) = (&text[..point], &text[point + 1..]);
    let fraction = &fraction[..fraction.len().min(9)];
    let scale = 10u64.pow(9 - fraction.len() as u32);
    unsigned(whole)?.checked_mul(1_000_000_000)?.checked_add(unsigned(fraction)? * scale)
}
