//! Due times in headers, relative to when the request arrives.
//!
//! `grpc-timeout`, as gRPC defines it: one to eight digits and a unit, `H`, `M`, `S`, `m` (milliseconds), `u` or `n`.
//!
//! `x-request-deadline`: a number of milliseconds (`250`), or a number with a unit, `us`, `ms`, `s` or `m` (minutes), with
//! at most nine digits before and nine after a point (`1.5s`). A minus sign says that it has passed. Nothing else, and no
//! blanks but around it; no dates, since clocks of two machines differ.

use std::time::Duration;

use http::HeaderMap;

/// Header of gRPC.
const GRPC_TIMEOUT: &str = "grpc-timeout";
/// Header of ours.
const REQUEST_DEADLINE: &str = "x-request-deadline";

/// What headers say of the due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stated {
    /// Time left, zero if it has passed; the shortest if several are stated.
    pub left: Option<Duration>,
    /// Number of headers that make no sense.
    pub malformed: u64,
}

/// Reads all headers with due times.
pub(crate) fn stated(headers: &HeaderMap) -> Stated {
    let mut stated = Stated { left: None, malformed: 0 };
    let texts = |name| headers.get_all(name).iter().map(|value| value.to_str().ok());
    let timeouts = texts(GRPC_TIMEOUT).map(|text| text.and_then(grpc_timeout));
    for left in timeouts.chain(texts(REQUEST_DEADLINE).map(|text| text.and_then(request_deadline))) {
        match left {
            Some(left) => stated.left = Some(stated.left.map_or(left, |other| left.min(other))),
            None => stated.malformed += 1,
        }
    }
    stated
}

/// Reads the value of `grpc-timeout`.
pub(crate) fn grpc_timeout(value: &str) -> Option<Duration> {
    let (digits, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    if !(1..=8).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(3600 * count)),
        "M" => Some(Duration::from_secs(60 * count)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

/// Reads the value of `x-request-deadline`.
pub(crate) fn request_deadline(value: &str) -> Option<Duration> {
    let value = value.trim_matches([' ', '\t']);
    let (has_passed, value) = match value.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, value),
    };
    let end = value.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(value.len());
    let (number, unit) = value.split_at(end);
    let unit = match unit {
        "us" => 1_000,
        "ms" | "" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (number, "0"),
    };
    let digits = |text: &str| {
        let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u128>().ok()).flatten()
    };
    let billionths = digits(&format!("{fraction:0<9}")[..fraction.len().max(9)])?;
    let nanoseconds = (digits(whole)? * 1_000_000_000 + billionths) * unit / 1_000_000_000;
    let left = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
    Some(if has_passed { Duration::ZERO } else { left })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn timeouts_of_grpc_have_a_unit() {
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(grpc_timeout("1H"), ms(3_600_000));
        assert_eq!(grpc_timeout("2M"), ms(120_000));
        assert_eq!(grpc_timeout("3S"), ms(3_000));
        assert_eq!(grpc_timeout("250m"), ms(250));
        assert_eq!(grpc_timeout("99999999u"), Some(Duration::from_micros(99_999_999)));
        assert_eq!(grpc_timeout("0n"), ms(0));
        for odd in ["", "S", "1", "123456789S", "-1S", "+1S", "1.5S", " 1S", "1S ", "1s", "1µ", "µ", "１S"] {
            assert_eq!(grpc_timeout(odd), None, "{odd}");
        }
    }

    #[test]
    fn deadlines_are_milliseconds_or_have_a_unit() {
        let us = |us| Some(Duration::from_micros(us));
        assert_eq!(request_deadline("250"), us(250_000));
        assert_eq!(request_deadline(" 250ms\t"), us(250_000));
        assert_eq!(request_deadline("1.5s"), us(1_500_000));
        assert_eq!(request_deadline("0.000001s"), us(1));
        assert_eq!(request_deadline("2m"), us(120_000_000));
        assert_eq!(request_deadline("7us"), us(7));
        assert_eq!(request_deadline("0"), us(0));
        assert_eq!(request_deadline("-20"), us(0));
        assert_eq!(request_deadline("-1.5s"), us(0));
        assert_eq!(request_deadline("999999999m"), Some(Duration::from_nanos(u64::MAX)), "as long as can be");
        let odd = [
            "",
            "-",
            "--1",
            "+1",
            ".",
            "1.",
            ".5",
            "1.5.5s",
            "s",
            "1 s",
            "1h",
            "1S",
            "NaN",
            "inf",
            "1e3",
            "0x10",
            "1234567890",
            "1.1234567890s",
            "2026-11-18T12:00:00Z",
            "１",
        ];
        for odd in odd {
            assert_eq!(request_deadline(odd), None, "{odd}");
        }
    }

    #[test]
    fn the_shortest_is_due_and_what_makes_no_sense_is_counted() {
        let mut headers = HeaderMap::new();
        assert_eq!(stated(&headers), Stated { left: None, malformed: 0 });
        headers.append(REQUEST_DEADLINE, "soon".parse().unwrap());
        assert_eq!(stated(&headers), Stated { left: None, malformed: 1 });
        headers.append(REQUEST_DEADLINE, http::HeaderValue::from_bytes(b"\xff").unwrap());
        headers.append(REQUEST_DEADLINE, "400".parse().unwrap());
        headers.append(GRPC_TIMEOUT, "300m".parse().unwrap());
        assert_eq!(stated(&headers), Stated { left: Some(Duration::from_millis(300)), malformed: 2 });
    }

    proptest! {
        #[test]
        fn any_bytes_may_come(bytes in prop::collection::vec(any::<u8>(), 0..30)) {
            let text = String::from_utf8_lossy(&bytes);
            let _ = (grpc_timeout(&text), request_deadline(&text));
            let mut headers = HeaderMap::new();
            if let Ok(value) = http::HeaderValue::from_bytes(&bytes) {
                headers.insert(REQUEST_DEADLINE, value.clone());
                headers.insert(GRPC_TIMEOUT, value);
            }
            let _ = stated(&headers);
        }

        #[test]
        fn texts_like_deadlines_are_read_or_refused(text in "[ -]?[0-9.]{0,12}[a-zA-Zµ]{0,2}[ ]?") {
            let _ = (grpc_timeout(&text), request_deadline(&text));
        }

        #[test]
        fn what_is_written_is_read(nanoseconds in 0u64..100_000_000_000_000_000) {
            let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
            let written = format!("{seconds}.{rest:09}s");
            prop_assert_eq!(request_deadline(&written), Some(Duration::from_nanos(nanoseconds)));
            let count = nanoseconds % 100_000_000;
            prop_assert_eq!(grpc_timeout(&format!("{count}n")), Some(Duration::from_nanos(count)));
        }
    }
}
