//! Exact comparison of sums and products of fractions. A verdict can depend on whether a load is exactly one, so
//! rounding is not allowed here.

use std::cmp::Ordering;

/// A fraction of whole numbers: numerator, denominator.
pub(crate) type Fraction = (u64, u64);

/// Compares Σ `terms` with `bound`. Returns none if they are too close to tell in floating point and the common
/// denominator does not fit in 128 bits.
pub(crate) fn compare_sum(terms: impl Iterator<Item = Fraction> + Clone, bound: u64) -> Option<Ordering> {
    // Mostly the two are far apart, and floating point decides.
    let (count, estimate) =
        terms.clone().fold((0u32, 0.0), |(count, sum), (part, whole)| (count + 1, sum + part as f64 / whole as f64));
    if count <= MOST_TERMS && (estimate - bound as f64).abs() > MARGIN * bound as f64 {
        return estimate.partial_cmp(&(bound as f64));
    }
    // Otherwise in units of 2⁻⁶⁴, with each term rounded down and up.
    let (mut low, mut high) = (0u128, 0u128);
    for (part, whole) in terms.clone() {
        let scaled = u128::from(part % whole) << 64;
        let floor = scaled / u128::from(whole);
        let whole_part = u128::from(part / whole) << 64;
        low = low.saturating_add(whole_part).saturating_add(floor);
        let up = u128::from(scaled % u128::from(whole) > 0);
        high = high.saturating_add(whole_part).saturating_add(floor + up);
    }
    let bound_scaled = u128::from(bound) << 64;
    if high < bound_scaled {
        return Some(Ordering::Less);
    }
    if low > bound_scaled {
        return Some(Ordering::Greater);
    }
    let mut sum = (0u128, 1u128);
    for (part, whole) in terms {
        sum = add(sum, (u128::from(part), u128::from(whole)))?;
    }
    Some(sum.0.cmp(&sum.1.checked_mul(u128::from(bound))?))
}

/// Whether Σ `terms` ≤ `bound` for certain.
pub(crate) fn sum_is_at_most(terms: impl Iterator<Item = Fraction> + Clone, bound: u64) -> bool {
    matches!(compare_sum(terms, bound), Some(Ordering::Less | Ordering::Equal))
}

/// Whether Π `terms` ≤ `bound` for certain. The comparison is exact if the product fits in 128 bits; otherwise it
/// leaves a margin for rounding.
pub(crate) fn product_is_at_most(terms: impl Iterator<Item = Fraction> + Clone, bound: u64) -> bool {
    let exact = terms.clone().try_fold((1u128, 1u128), |product, (part, whole)| {
        let (a, b) = reduced(product.0, u128::from(whole));
        let (c, d) = reduced(u128::from(part), product.1);
        Some((a.checked_mul(c)?, b.checked_mul(d)?))
    });
    match exact.and_then(|(part, whole)| Some(part <= whole.checked_mul(u128::from(bound))?)) {
        Some(decided) => decided,
        None => terms.map(|(part, whole)| part as f64 / whole as f64).product::<f64>() < bound as f64 * (1.0 - MARGIN),
    }
}

/// Upper bound on the relative error of a floating-point sum or product of up to [`MOST_TERMS`] terms.
pub(crate) const MARGIN: f64 = 1e-9;
const MOST_TERMS: u32 = 1_000_000;

fn add(a: (u128, u128), b: (u128, u128)) -> Option<(u128, u128)> {
    let common = gcd(a.1, b.1);
    let whole = a.1.checked_mul(b.1 / common)?;
    let part = a.0.checked_mul(b.1 / common)?.checked_add(b.0.checked_mul(a.1 / common)?)?;
    Some(reduced(part, whole))
}

fn reduced(part: u128, whole: u128) -> (u128, u128) {
    let common = gcd(part, whole).max(1);
    (part / common, whole / common)
}

/// Greatest common divisor. If one number is 0, the result is the other one.
pub(crate) fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_told_apart_to_the_last_nanosecond() {
        let thirds = [(1, 3), (1, 3), (1, 3)];
        assert_eq!(compare_sum(thirds.into_iter(), 1), Some(Ordering::Equal));
        let year = 31_536_000_000_000_000;
        let nearly = [(1, 3), (1, 3), (year / 3 - 1, year)];
        assert_eq!(compare_sum(nearly.into_iter(), 1), Some(Ordering::Less));
        let over = [(1, 3), (1, 3), (year / 3 + 1, year)];
        assert_eq!(compare_sum(over.into_iter(), 1), Some(Ordering::Greater));
        assert_eq!(compare_sum([(7, 2), (1, 2)].into_iter(), 4), Some(Ordering::Equal));
        assert_eq!(compare_sum([(u64::MAX, 1); 3].into_iter(), 4), Some(Ordering::Greater));
    }

    #[test]
    fn products_are_exact_where_they_fit_and_careful_where_they_do_not() {
        assert!(product_is_at_most([(3, 2), (4, 3)].into_iter(), 2));
        assert!(!product_is_at_most([(3, 2), (4_000_001, 3_000_000)].into_iter(), 2));
        let wide: Vec<Fraction> = (0..40).map(|i| (1_000_000_007 + i, 1_000_000_000 - i)).collect();
        assert!(product_is_at_most(wide.into_iter(), 2));
    }
}
