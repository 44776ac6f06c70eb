//! The colors of all pages and pictures, for light and dark mode: a theme, a palette for series, and a perceptually
//! uniform scale.

/// Colors of the theme: name, color in light mode, color in dark mode.
const THEME: [(&str, &str, &str); 12] = [
    ("ink", "#1c2733", "#e3e8ed"),
    ("soft", "#566473", "#9dabb8"),
    ("line", "#dfe5ea", "#2f3943"),
    ("mark", "#7a8793", "#8894a0"),
    ("ground", "#ffffff", "#12171c"),
    ("panel", "#f3f6f8", "#1b222a"),
    ("good", "#00795a", "#35c496"),
    ("bad", "#c8102e", "#ff6f80"),
    ("warn", "#8a5a00", "#e2b24d"),
    ("tip", "#1c2733", "#e3e8ed"),
    ("on-tip", "#ffffff", "#12171c"),
    ("focus", "#0b62d6", "#7ab8ff"),
];

/// Colors of series, in light and in dark mode. Most color-blind readers can tell the first ten apart (after Okabe and
/// Ito, and Tol). The others are as far from all before as can be found, in OKLab and as protanopes and deuteranopes see
/// them; they differ in lightness more than in hue.
pub const PALETTE: [(&str, &str); 18] = [
    ("#0072b2", "#4aa8e8"),
    ("#e69f00", "#f0b429"),
    ("#009e73", "#2cc79a"),
    ("#cc79a7", "#e29cc3"),
    ("#56b4e9", "#93d3f7"),
    ("#d55e00", "#f5833a"),
    ("#8a7f00", "#c2b634"),
    ("#882255", "#d1578f"),
    ("#44aa99", "#6fd3c2"),
    ("#666666", "#a3a3a3"),
    ("#2c2398", "#7b88fc"),
    ("#642819", "#c6826f"),
    ("#972583", "#e873cf"),
    ("#7ca857", "#a3d07d"),
    ("#7985d4", "#a8b5fa"),
    ("#935839", "#da9978"),
    ("#d7d209", "#e1dd28"),
    ("#48ec98", "#57f7a2"),
];

/// Dash patterns, one for each time the palette has been used up.
pub(super) const DASHES: [&str; 4] = ["", "6 3", "2 3", "8 3 2 3"];

/// Returns the dash pattern of a series as a `stroke-dasharray`; empty for a solid line.
pub fn dash(series: usize) -> &'static str {
    DASHES[series / PALETTE.len() % DASHES.len()]
}

/// Ten points of the viridis scale (Smith and van der Walt). Its lightness rises evenly, so the order of values shows
/// in print and for every kind of color vision.
const VIRIDIS: [[f64; 3]; 10] = [
    [68.0, 1.0, 84.0],
    [72.0, 40.0, 120.0],
    [62.0, 73.0, 137.0],
    [49.0, 104.0, 142.0],
    [38.0, 130.0, 142.0],
    [31.0, 158.0, 137.0],
    [53.0, 183.0, 121.0],
    [110.0, 206.0, 88.0],
    [181.0, 222.0, 43.0],
    [253.0, 231.0, 37.0],
];

/// Number of steps of the scale in tables, whose cells have the classes `q0` to `q20`.
pub const LEVELS: usize = 20;

fn mixed(share: f64) -> [f64; 3] {
    let at = if share.is_finite() { share.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64 } else { 0.0 };
    let below = (at as usize).min(VIRIDIS.len() - 2);
    let part = at - below as f64;
    [0, 1, 2].map(|of| VIRIDIS[below][of] * (1.0 - part) + VIRIDIS[below + 1][of] * part)
}

/// Returns the color of a share from 0 (darkest) to 1 (brightest).
pub fn shade(share: f64) -> String {
    let [red, green, blue] = mixed(share).map(|part| part.round() as u8);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Returns the text color, black or white, that is legible on [`shade`] of the same share.
pub fn ink_on(share: f64) -> &'static str {
    if luminance(share) > 0.18 { "#000" } else { "#fff" }
}

/// Relative luminance as WCAG defines it, 0 to 1.
fn luminance(share: f64) -> f64 {
    let linear = |part: f64| {
        let part = part / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    };
    let [red, green, blue] = mixed(share).map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// All colors by name; the palette is `c0`, `c1` and so on.
fn named() -> impl Iterator<Item = (String, &'static str, &'static str)> {
    let theme = THEME.into_iter().map(|(name, light, dark)| (name.to_string(), light, dark));
    theme.chain(PALETTE.into_iter().enumerate().map(|(index, (light, dark))| (format!("c{index}"), light, dark)))
}

/// Returns the colors as CSS variables, and the classes of the scale.
pub(super) fn variables() -> String {
    let list = |is_dark: bool| -> String {
        named().map(|(name, light, dark)| format!("--{name}:{};", if is_dark { dark } else { light })).collect()
    };
    let level = |step: usize| {
        let share = step as f64 / LEVELS as f64;
        format!(".q{step}{{background:{};color:{}}}", shade(share), ink_on(share))
    };
    format!(
        ":root{{color-scheme:light dark;{}}}\n@media (prefers-color-scheme:dark){{:root{{{}}}}}\n{}\n",
        list(false),
        list(true),
        (0..=LEVELS).map(level).collect::<String>()
    )
}

/// Returns a style sheet with each `var(--name)` replaced by its color, once for light and once for dark mode.
/// Stand-alone pictures need this, because programs other than browsers read them too.
pub(super) fn resolved(style: &str) -> String {
    let with = |is_dark: bool| {
        named().fold(style.to_string(), |style, (name, light, dark)| {
            style.replace(&format!("var(--{name})"), if is_dark { dark } else { light })
        })
    };
    format!("{}@media (prefers-color-scheme:dark){{{}}}", with(false), with(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_rises_in_lightness() {
        let steps: Vec<f64> = (0..=100).map(|step| luminance(f64::from(step) / 100.0)).collect();
        assert!(steps.windows(2).all(|pair| pair[0] < pair[1]), "{steps:?}");
        assert_eq!((shade(0.0), shade(1.0), shade(f64::NAN)), ("#440154".into(), "#fde725".into(), "#440154".into()));
    }

    #[test]
    fn figures_on_the_scale_can_be_read() {
        for step in 0..=LEVELS {
            let share = step as f64 / LEVELS as f64;
            let ground = luminance(share) + 0.05;
            let contrast = if ink_on(share) == "#000" { ground / 0.05 } else { 1.05 / ground };
            assert!(contrast >= 4.5, "{share}: {contrast}");
        }
    }

    /// A color of the form #rrggbb in OKLab (Ottosson), whose distances are those that people see.
    fn oklab(color: &str) -> [f64; 3] {
        let linear = |at: usize| {
            let part = f64::from(u8::from_str_radix(&color[at..at + 2], 16).unwrap()) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let [red, green, blue] = [1, 3, 5].map(linear);
        let l = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue).cbrt();
        let m = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue).cbrt();
        let s = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue).cbrt();
        [
            0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
            1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
            0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s,
        ]
    }

    #[test]
    fn no_two_colors_of_the_palette_look_alike() {
        for colors in [PALETTE.map(|(light, _)| light), PALETTE.map(|(_, dark)| dark)] {
            for (place, one) in colors.iter().enumerate() {
                for other in &colors[..place] {
                    let (a, b) = (oklab(one), oklab(other));
                    let apart = (0..3).map(|of| (a[of] - b[of]).powi(2)).sum::<f64>().sqrt();
                    assert!(apart > 0.06, "{one} {other}: {apart}");
                }
            }
        }
    }

    #[test]
    fn no_variable_is_left_in_a_picture_that_stands_alone() {
        let style = resolved("a{fill:var(--ink)}b{stroke:var(--c3)}");
        assert!(!style.contains("var(") && style.contains("#1c2733") && style.contains("#e29cc3"), "{style}");
    }
}
