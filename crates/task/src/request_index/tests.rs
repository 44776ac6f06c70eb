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
