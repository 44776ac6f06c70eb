//! Random numbers with a given sum, uniformly distributed over all such numbers.

use rand::RngExt;
use rand_pcg::Pcg64;

use super::shares::shuffled;

/// Draws `n` numbers in [0, 1] with the sum `total`, uniform over all such numbers (Stafford's RandFixedSum).
///
/// The polytope of all such numbers is cut into simplices whose volumes follow a recurrence (`volumes`). Walking down
/// the recurrence with the matching probabilities (`odds`) selects a simplex in proportion to its volume, and the walk
/// draws a uniform point in it.
pub(super) fn rand_fixed_sum(n: usize, total: f64, rng: &mut Pcg64) -> Vec<f64> {
    if n == 1 {
        return vec![total];
    }
    let whole = (total.floor() as usize).min(n - 1);
    let total = total.clamp(whole as f64, whole as f64 + 1.0);
    let above: Vec<f64> = (0..n).map(|i| total - (whole as f64 - i as f64)).collect();
    let below: Vec<f64> = (0..n).map(|i| (whole + n - i) as f64 - total).collect();
    let mut volumes = vec![0.0; n + 2];
    volumes[1] = f64::MAX / 1e10;
    let mut odds = vec![vec![0.0; n]; n - 1];
    for i in 2..=n {
        let mut next = vec![0.0; n + 2];
        for j in 0..i {
            let (up, down) = (above[j], below[n - i + j]);
            let stay = volumes[j + 1] * up / i as f64;
            let step = volumes[j] * down / i as f64;
            next[j + 1] = stay + step;
            let sum = next[j + 1] + f64::MIN_POSITIVE;
            odds[i - 2][j] = if down > up { step / sum } else { 1.0 - stay / sum };
        }
        volumes = next;
    }
    let mut values = Vec::with_capacity(n);
    let (mut left, mut j, mut sum, mut product) = (total, whole + 1, 0.0, 1.0);
    for i in (1..n).rev() {
        let steps = rng.random::<f64>() <= odds[i - 1][j - 1];
        let step = if steps { 1.0 } else { 0.0 };
        let shrink = rng.random::<f64>().powf(1.0 / i as f64);
        sum += (1.0 - shrink) * product * left / (i + 1) as f64;
        product *= shrink;
        values.push(sum + product * step);
        left -= step;
        j -= usize::from(steps);
    }
    values.push(sum + product * left);
    // The construction sorts the values. Shuffling removes the order.
    shuffled(n, rng).into_iter().map(|at| values[at]).collect()
}

/// Draws numbers between zero and their caps with the sum `total`, uniform over all such numbers (convolutional fixed
/// sum).
///
/// If each number were uniform up to its cap, the density of the sum of the first k numbers would be the density of the
/// sum of the first k − 1, averaged over a window as wide as the k-th cap: a convolution. The numbers are drawn from
/// the integrals of these densities: given that the first k numbers add up to `y`, the sum of the first k − 1 has its
/// density restricted to `y − cap` to `y`. After Griffin and Davis, who replaced the Dirichlet-rescale algorithm, which
/// is not uniform, by this one.
pub(super) fn capped_fixed_sum(caps: &[f64], total: f64, rng: &mut Pcg64) -> Vec<f64> {
    let all: f64 = caps.iter().sum();
    if total > all / 2.0 {
        // By symmetry, draw the distances to the caps instead: their sum is smaller, which makes the grid finer.
        let missing = capped_fixed_sum_below(caps, (all - total).max(0.0), rng);
        return caps.iter().zip(missing).map(|(cap, missing)| cap - missing).collect();
    }
    capped_fixed_sum_below(caps, total, rng)
}

/// Does the work of [`capped_fixed_sum`] for totals of at most half the sum of the caps.
fn capped_fixed_sum_below(caps: &[f64], total: f64, rng: &mut Pcg64) -> Vec<f64> {
    let n = caps.len();
    if total <= 0.0 {
        return vec![0.0; n];
    }
    // Where no cap is binding, the densities grow like a power of n. Each factor of e gets 64 cells.
    let tables: Vec<CumulativeDistribution> = {
        let cells = (64 * n).max(4096);
        let mut tables = vec![CumulativeDistribution::of_box(caps[0], total, cells)];
        for k in 1..n.saturating_sub(1) {
            tables.push(tables[k - 1].averaged(caps[k]));
        }
        tables
    };
    let mut shares = vec![0.0; n];
    let mut left = total;
    let mut most_before: f64 = caps.iter().sum();
    for k in (1..n).rev() {
        most_before -= caps[k];
        let least = (left - caps[k]).max(0.0);
        let sum_before = tables[k - 1].draw_between(least, left.min(most_before).max(least), rng);
        shares[k] = left - sum_before;
        left = sum_before;
    }
    shares[0] = left;
    shares
}

/// A cumulative distribution, tabulated on a grid that starts at zero, up to a constant factor.
struct CumulativeDistribution {
    /// Width of a grid cell.
    step: f64,
    /// Integral of the density up to each grid point.
    integral: Vec<f64>,
}

impl CumulativeDistribution {
    /// Returns the distribution that is uniform from zero to `cap`.
    fn of_box(cap: f64, total: f64, cells: usize) -> CumulativeDistribution {
        let step = total / cells as f64;
        CumulativeDistribution { step, integral: (0..=cells).map(|cell| (cell as f64 * step / cap).min(1.0)).collect() }
    }

    /// Returns the integral of the density up to `x`, interpolated linearly.
    fn at(&self, x: f64) -> f64 {
        let place = (x / self.step).clamp(0.0, (self.integral.len() - 1) as f64);
        let cell = (place as usize).min(self.integral.len() - 2);
        let (low, high) = (self.integral[cell], self.integral[cell + 1]);
        low + (high - low) * (place - cell as f64)
    }

    /// Returns the distribution of the sum with one more number that is uniform from zero to `cap`.
    fn averaged(&self, cap: f64) -> CumulativeDistribution {
        let density = |cell: usize| {
            let x = cell as f64 * self.step;
            self.at(x) - if x > cap { self.at(x - cap) } else { 0.0 }
        };
        let mut integral = vec![0.0; self.integral.len()];
        let mut before = density(0);
        for cell in 1..integral.len() {
            let here = density(cell);
            integral[cell] = integral[cell - 1] + (before + here) / 2.0;
            before = here;
        }
        let most = integral[integral.len() - 1].max(f64::MIN_POSITIVE);
        integral.iter_mut().for_each(|value| *value /= most);
        CumulativeDistribution { step: self.step, integral }
    }

    /// Draws a number from this distribution, restricted to `low` to `high`.
    fn draw_between(&self, low: f64, high: f64, rng: &mut Pcg64) -> f64 {
        let (from, to) = (self.at(low), self.at(high));
        let wanted = from + (to - from) * rng.random::<f64>();
        let cell = self.integral.partition_point(|value| *value < wanted).clamp(1, self.integral.len() - 1);
        let (below, above) = (self.integral[cell - 1], self.integral[cell]);
        let part = if above > below { (wanted - below) / (above - below) } else { 0.5 };
        (((cell - 1) as f64 + part) * self.step).clamp(low, high)
    }
}
