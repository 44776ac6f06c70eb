//! The product-limit estimator (Kaplan and Meier, "Nonparametric estimation from incomplete observations", Journal of
//! the American Statistical Association 53, 1958): how many lengths are greater than each, where some were cut off.

/// Share of lengths beyond a point that moves upwards over all that were seen.
///
/// ```
/// use temponet_task::ProductLimit;
///
/// // Four were seen: one completed after 1 s, one was cut off after 2 s, and two completed after 3 s and 4 s.
/// let mut limit = ProductLimit::of(4.0);
/// assert_eq!(limit.pass(1.0, 0.0), 0.75);
/// assert_eq!(limit.pass(0.0, 1.0), 0.75);
/// assert_eq!(limit.pass(1.0, 0.0), 0.375);
/// assert_eq!(limit.pass(1.0, 0.0), 0.0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ProductLimit {
    beyond: f64,
    left: f64,
}

impl ProductLimit {
    /// Begins before the least of this many lengths. Counts may be fractions, as where old ones fade.
    pub fn of(count: f64) -> ProductLimit {
        ProductLimit { beyond: 1.0, left: count }
    }

    /// Moves beyond a length at which this many were complete and this many cut off, which counts as later. Returns the
    /// share of lengths that are still greater.
    pub fn pass(&mut self, completed: f64, cut_off: f64) -> f64 {
        if completed > 0.0 {
            self.beyond *= 1.0 - completed / self.left;
        }
        self.left -= completed + cut_off;
        self.beyond
    }
}
