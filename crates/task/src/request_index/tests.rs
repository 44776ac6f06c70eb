use super::*;

fn request(arrival: u64, window: u64, median: u64, spread: f64) -> IndexedRequest {
    IndexedRequest { arrival, due: arrival + window, median, spread, value: 1.0 }
}

/// An index that has seen some traffic, all times multiplied by a factor.
fn seasoned(weights: IndexWeights, factor: u64) -> RequestIndex {
    let mut index = RequestIndex::new(weights, 4, true);
    for place in 0..300u64 {
        let median = 1_000 * (1 + place * 7_919 % 50);
        let request = request(9_000 * place * factor, (100_000 + place % 9 * 10_000) * factor, median * factor, 0.4);
        index.observe(&request);
        index.learn(&request, median * (1 + place % 3) / 2 * factor, place % 4 > 0);
    }
    index
}

#[test]
fn weights_are_read_as_they_are_written() {
    let plain = IndexWeights::plain();
    assert_eq!(IndexWeights::parse(&plain.to_string()), Ok(plain.clone()));
    assert_eq!(IndexWeights::new(plain.numbers()), Ok(plain));
    assert_eq!(IndexWeights::parse("1\n# nothing\n2 # two\n"), Err(WeightsProblem::Count(2)));
    assert_eq!(IndexWeights::parse("1\n\nx"), Err(WeightsProblem::NotANumber(3)));
    assert_eq!(IndexWeights::parse("1\nNaN"), Err(WeightsProblem::NotANumber(2)));
}

#[test]
fn the_weights_of_this_crate_are_sound() {
    let learned = IndexWeights::parse(include_str!("weights.txt")).unwrap();
    assert_eq!(learned, IndexWeights::learned());
    assert_ne!(learned, IndexWeights::plain());
}

/// Times in other units give the same order and the same margin.
#[test]
fn a_score_has_no_unit() {
    let (one, other) = (seasoned(IndexWeights::learned(), 1), seasoned(IndexWeights::learned(), 1_024));
    let date = 9_000 * 300;
    let scores = |index: &RequestIndex, factor: u64| -> Vec<[f64; 3]> {
        let medians = [500, 7_000, 90_000];
        let score = |(place, median): (usize, &u64)| {
            let request = request(date * factor, 100_000 * factor, median * factor, 0.3);
            let Score { key, margin, least } = index.score(&request, 3 * place);
            [(key ^ (1 << 63)) as i64 as f64 / factor as f64, margin, least as f64 / factor as f64]
        };
        medians.iter().enumerate().map(score).collect()
    };
    for (a, b) in scores(&one, 1).into_iter().zip(scores(&other, 1_024)) {
        let near = |at: usize, most: f64| (a[at] - b[at]).abs() < most;
        assert!(near(0, 2.0) && near(1, 1e-9) && near(2, 2.0), "{a:?} and {b:?}");
    }
}

/// With weights that say nothing, what is due earlier goes first, and so does the shorter one.
#[test]
fn a_key_is_a_date() {
    let nothing = IndexWeights::new(&[0.0; IndexWeights::COUNT]).unwrap();
    let index = seasoned(nothing, 1);
    let key = |request: IndexedRequest| index.score(&request, 0).key;
    assert!(key(request(50, 1_000, 900, 0.0)) < key(request(50, 2_000, 900, 0.0)));
    assert!(key(request(50, 1_000, 900, 0.0)) < key(request(80, 1_000, 900, 0.0)));
    assert!(key(request(50, 1_000, 900, 0.0)) < key(request(50, 1_000, 990, 0.0)));
    let worthy = IndexedRequest { value: 9.0, ..request(50, 1_000, 900, 0.0) };
    assert!(key(worthy) < key(request(50, 1_000, 900, 0.0)));
    assert!(ordered(-1e30) < ordered(-1.0) && ordered(-1.0) < ordered(0.0) && ordered(0.0) < ordered(1e30));
}

/// A request that comes while all are busy may wait, but not longer than the reserve leaves.
#[test]
fn a_reserve_is_a_share_of_the_time_of_a_request() {
    let saying = |reserve: f64| {
        let mut numbers = [0.0; IndexWeights::COUNT];
        // The last bias is that of the reserve.
        numbers[IndexWeights::COUNT - 1] = reserve;
        seasoned(IndexWeights::new(&numbers).unwrap(), 1).score(&request(2_700_000, 100_000, 10, 0.0), 0)
    };
    assert_eq!((saying(0.0).least, saying(-9.0).least), (30_000, 0));
    assert_eq!(saying(9.0).planned(10), 98_000);
    assert!(saying(0.0).planned(1_000_000) > 500_000, "a long request is planned as long as it is");
}

#[test]
fn odd_numbers_give_a_score() {
    let mut index = RequestIndex::new(IndexWeights::learned(), 0, false);
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0];
    for spread in odd {
        for value in odd {
            for (arrival, due, median) in [(0, 0, 0), (u64::MAX, 0, u64::MAX), (5, u64::MAX, 1), (5, 6, u64::MAX)] {
                let request = IndexedRequest { arrival, due, median, spread, value };
                index.observe(&request);
                let score = index.score(&request, usize::MAX);
                assert!(score.margin.is_finite(), "{request:?}");
                assert!(score.planned(0) == score.least && score.least <= request.due);
                index.learn(&request, median / 2, value > 0.0);
            }
        }
    }
}

/// Requests of median 8 and of this spread, each with this window, that took this long and were complete if they ended
/// in time.
fn taught(count: u64, window: impl Fn(u64) -> u64, length: impl Fn(u64) -> u64, cancels: bool) -> Lengths {
    let mut lengths = Lengths::default();
    for place in 0..count {
        let (window, length) = (window(place), length(place));
        let is_complete = !cancels || length <= window;
        let served = if is_complete { length } else { window };
        lengths.learn(&request(1_000 * place, window, 8_000, 0.3), served, is_complete);
    }
    lengths
}

/// Two requests in five of a tenth of the length of the others would bring the mean of the logarithms down to two fifths.
#[test]
fn a_median_of_skewed_lengths_remains_a_median() {
    let length = |place: u64| if place * 7_919 % 5 < 2 { 800 } else { 8_000 };
    let (correction, spread) = taught(600, |_| 20_000, length, false).correction(&request(0, 20_000, 8_000, 0.3));
    assert!(correction.abs() < 0.1 && spread > 0.9, "{correction} {spread}");
}

#[test]
fn a_wrong_median_is_corrected_and_so_is_one_that_due_times_tell() {
    // Half of the stated median, times 0.7 to 1.4.
    let around = |place: u64| (4_000.0 * (1.0 + (place * 7_919 % 71) as f64 / 100.0) / 1.35) as u64;
    for cancels in [false, true] {
        let (correction, _) = taught(600, |_| 20_000, around, cancels).correction(&request(0, 20_000, 8_000, 0.3));
        assert!((correction + core::f64::consts::LN_2).abs() < 0.1, "{correction}");
        let window = |place: u64| 2_000 * (1 + place * 104_729 % 40);
        let told = taught(600, window, |place| window(place) / 3, cancels);
        for window in [10_000, 60_000] {
            let median = 8_000.0 * told.correction(&request(0, window, 8_000, 0.3)).0.exp();
            assert!((median * 3.0 / window as f64).ln().abs() < 0.15, "{median} of {window}");
        }
    }
}

/// Half of the lengths are beyond the time to the due time, and are cut off there.
#[test]
fn lengths_that_were_cut_off_count_as_longer() {
    let length = |place: u64| if place * 7_919 % 10 < 5 { 4_000 } else { 40_000 };
    let [cut, whole] = [10_000, 100_000].map(|window| taught(600, |_| window, length, true));
    let median = |lengths: &Lengths, window| 8_000.0 * lengths.correction(&request(0, window, 8_000, 0.3)).0.exp();
    assert!(median(&cut, 10_000) > 5_000.0, "{} and {}", median(&cut, 10_000), median(&whole, 100_000));
}
