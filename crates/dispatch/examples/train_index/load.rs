//! Loads of servers, drawn at random: arrivals, lengths, due times, values, and what is said of lengths.
//!
//! There are kinds that training draws and kinds that only the judgement draws.

/// Random numbers: a counter through the finalizer of SplitMix64.
#[derive(Clone)]
pub struct Draws(u64);

impl Draws {
    pub fn new(seed: u64, stream: u64) -> Draws {
        let mut draws = Draws(seed ^ stream.wrapping_mul(0xD134_2543_DE82_EF95));
        draws.bits();
        Draws(draws.bits() ^ stream)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// From 0 to 1, neither of them.
    pub fn share(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    pub fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.share()
    }

    /// Evenly in the logarithm.
    pub fn ratio(&mut self, least: f64, most: f64) -> f64 {
        self.between(least.ln(), most.ln()).exp()
    }

    pub fn exponential(&mut self) -> f64 {
        -self.share().ln()
    }

    pub fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (std::f64::consts::TAU * self.share()).cos()
    }

    fn below(&mut self, count: u64) -> u64 {
        self.bits() % count
    }
}

/// A request; times in seconds.
#[derive(Clone, Debug)]
pub struct Asked {
    pub arrival: f64,
    pub length: f64,
    pub window: f64,
    pub value: f64,
    pub class: u32,
    /// Median and ninth decile.
    pub estimate: Option<[f64; 2]>,
    /// A number that grows with the length, for a regression.
    pub feature: Option<f64>,
}

pub struct Load {
    pub slots: usize,
    pub cancels: bool,
    pub requests: Vec<Asked>,
}

/// Which kinds of arrivals, lengths and due times are drawn.
#[derive(Clone, Copy, PartialEq)]
pub enum Kinds {
    Training,
    /// Kinds that training never draws.
    Judgement,
    /// Kinds that are unlike those of training in more than shape: long requests come in spells, regimes change, what is
    /// said of lengths is off by a factor or says little.
    Foreign,
}

/// What is said of lengths in a load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Known {
    Nothing,
    Estimate {
        error: f64,
    },
    /// A number from which a regression learns lengths; its logarithm is off by this standard deviation. Training draws
    /// none.
    Feature {
        error: f64,
    },
}

impl Load {
    /// Draws a load, with lengths known as `known` says, or as drawn.
    pub fn draw(draws: &mut Draws, kinds: Kinds, known: Option<Known>) -> Load {
        let slots = (draws.ratio(1.0, 33.0) as usize).clamp(1, 32);
        let cancels = draws.share() < 0.5;
        // So long that most of an overload is not its beginning, when nothing is late yet.
        let count = ((slots as f64 * draws.ratio(50.0, 500.0)) as usize).clamp(400, 6_000);
        let drawn = match draws.share() {
            share if share < 0.3 => Known::Nothing,
            share if share < 0.5 => Known::Estimate { error: 0.0 },
            _ => Known::Estimate { error: draws.between(0.1, 1.0) },
        };
        let known = known.unwrap_or(drawn);
        // What is said of the error may itself be wrong.
        let misjudged = if draws.share() < 0.2 { draws.ratio(0.5, 2.0) } else { 1.0 };
        let (lengths, classes) = match kinds {
            Kinds::Foreign => draw_spells(draws, count),
            _ => draw_lengths(draws, kinds, count),
        };
        // By how much estimates are off in common, and what power of the length a feature goes with.
        let (factor, power) = match kinds {
            Kinds::Foreign => (draws.ratio(0.5, 2.0), draws.between(0.0, 0.6)),
            _ => (1.0, 1.0),
        };
        let mean = lengths.iter().sum::<f64>() / count as f64;
        let load = draws.ratio(0.7, 3.0);
        let arrivals = draw_arrivals(draws, kinds, count, mean / (slots as f64 * load));
        let windows = draw_windows(draws, kinds, &lengths, mean);
        let values = draw_values(draws, count);
        let requests = (0..count).map(|place| {
            let length = lengths[place];
            let (estimate, feature) = match known {
                Known::Nothing => (None, None),
                Known::Estimate { error } => {
                    let median = factor * length * (error * draws.normal()).exp();
                    (Some([median, median * (1.281_551_565_544_6 * error * misjudged).exp()]), None)
                }
                Known::Feature { error } => (None, Some(length.powf(power) * (error * draws.normal()).exp())),
            };
            let (arrival, window, value) = (arrivals[place], windows[place], values[place]);
            Asked { arrival, length, window, value, class: classes[place], estimate, feature }
        });
        Load { slots, cancels, requests: requests.collect() }
    }
}

/// Lengths with a mean of about one second, and classes.
fn draw_lengths(draws: &mut Draws, kinds: Kinds, count: usize) -> (Vec<f64>, Vec<u32>) {
    let classes = if draws.share() < 0.5 { 1 } else { 2 + draws.below(5) };
    let scales: Vec<f64> = (0..classes).map(|_| (0.8 * draws.normal()).exp()).collect();
    let shape = draws.below(3);
    let (sigma, long, often) = (draws.between(0.2, 1.5), draws.ratio(4.0, 50.0), draws.between(0.05, 0.5));
    let tail = draws.between(1.3, 3.0);
    let mut lengths = Vec::with_capacity(count);
    let mut of_class = Vec::with_capacity(count);
    for _ in 0..count {
        let class = draws.below(classes);
        let length = match (kinds, shape) {
            (Kinds::Training, 0) => (sigma * draws.normal()).exp(),
            (Kinds::Training, 1) => {
                let mode = if draws.share() < often { long } else { 1.0 };
                mode * (0.2 * draws.normal()).exp()
            }
            (Kinds::Training, _) => draws.share().powf(-1.0 / tail).min(300.0),
            // Weibull, of a tail between the exponential and the heavy one.
            (Kinds::Judgement | Kinds::Foreign, 0) => draws.exponential().powf(0.5 + sigma),
            // Uniform.
            (Kinds::Judgement | Kinds::Foreign, 1) => draws.between(0.1, 2.0),
            // Hyperexponential: two kinds of exponential lengths.
            (Kinds::Judgement | Kinds::Foreign, _) => {
                draws.exponential() * if draws.share() < often { long / 4.0 } else { 1.0 }
            }
        };
        lengths.push(length.max(1e-3) * scales[class as usize]);
        of_class.push(class as u32);
    }
    (lengths, of_class)
}

/// Lengths of a common kind that go up and down slowly, cut off at a limit, as where the mood of clients changes.
fn draw_spells(draws: &mut Draws, count: usize) -> (Vec<f64>, Vec<u32>) {
    let (sigma, slow, stay) = (draws.between(0.2, 1.2), draws.between(0.0, 1.0), draws.ratio(20.0, 1_000.0));
    let (limit, fading) = ((sigma * draws.between(0.5, 3.0)).exp(), (-1.0 / stay).exp());
    let mut spell = draws.normal();
    let length = |_| {
        spell = fading * spell + (1.0 - fading * fading).sqrt() * draws.normal();
        (sigma * draws.normal() + slow * spell).exp().min(limit)
    };
    ((0..count).map(length).collect(), vec![0; count])
}

/// Dates of arrival with about this mean time between two.
fn draw_arrivals(draws: &mut Draws, kinds: Kinds, count: usize, gap: f64) -> Vec<f64> {
    let shape = draws.below(3);
    let (contrast, stay) = (draws.ratio(1.5, 6.0), draws.ratio(30.0, 400.0));
    let (amplitude, waves) = (draws.between(0.3, 0.9), draws.between(0.5, 4.0));
    let (mut now, mut is_busy) = (0.0, draws.share() < 0.5);
    let mut dates = Vec::with_capacity(count);
    let crowd = draws.below(count as u64) as usize;
    let mut regime = 1.0;
    for place in 0..count {
        let progress = place as f64 / count as f64;
        let rate = match (kinds, shape) {
            (Kinds::Training, 0) => 1.0,
            (Kinds::Training, 1) => {
                is_busy ^= draws.share() < 1.0 / stay;
                if is_busy { contrast.sqrt() } else { 1.0 / contrast.sqrt() }
            }
            (Kinds::Training, _) => 1.0 + amplitude * (std::f64::consts::TAU * waves * progress).sin(),
            // Regimes of some hundred requests, underload among them.
            (Kinds::Foreign, _) => {
                if draws.share() < 0.25 / stay {
                    regime = draws.ratio(0.3, 3.0);
                }
                regime
            }
            // Bunches that come at once.
            (Kinds::Judgement, 0) => {
                if draws.share() < 1.0 / contrast {
                    1.0 / contrast
                } else {
                    1e3
                }
            }
            // A crowd that comes once.
            (Kinds::Judgement, 1) => {
                if (crowd..crowd + count / 5).contains(&place) {
                    contrast
                } else {
                    0.8
                }
            }
            // Load that grows.
            (Kinds::Judgement, _) => 0.5 + 1.5 * progress,
        };
        now += gap * draws.exponential() / rate;
        dates.push(now);
    }
    dates
}

/// Times from arrivals to due times.
fn draw_windows(draws: &mut Draws, kinds: Kinds, lengths: &[f64], mean: f64) -> Vec<f64> {
    let shape = draws.below(4);
    let (tight, wide, often) = (mean * draws.ratio(1.0, 8.0), draws.ratio(1.5, 10.0), draws.between(0.2, 0.8));
    let (base, factor, spread) = (mean * draws.ratio(0.2, 5.0), draws.between(1.2, 6.0), draws.between(0.2, 1.0));
    let window = |length: &f64| match (kinds, shape) {
        (Kinds::Training, 0) => tight,
        (Kinds::Training, 1) => {
            if draws.share() < often {
                tight
            } else {
                tight * wide
            }
        }
        (Kinds::Training, 2) => tight * (spread * draws.normal()).exp(),
        (Kinds::Training, _) => base + factor * length,
        (Kinds::Judgement, 0 | 1) => tight * (0.2 + draws.exponential()),
        // A few that wait much longer than the others, also independent of lengths.
        (Kinds::Foreign, 0 | 1) => tight * [1.0, wide, wide * wide][(3.0 * draws.share().powf(1.0 / often)) as usize],
        (Kinds::Foreign, 2) => base + factor * length,
        (Kinds::Judgement | Kinds::Foreign, _) => {
            (base + tight * draws.share() + factor * length.sqrt()).max(1.1 * length)
        }
    };
    lengths.iter().map(window).collect()
}

fn draw_values(draws: &mut Draws, count: usize) -> Vec<f64> {
    let (shape, spread, ratio) = (draws.below(5), draws.between(0.3, 1.0), draws.ratio(2.0, 10.0));
    let value = |_| match shape {
        0 => (spread * draws.normal()).exp(),
        1 => [1.0, ratio][usize::from(draws.share() < 0.2)],
        _ => 1.0,
    };
    (0..count).map(value).collect()
}
