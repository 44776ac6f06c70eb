//! Functions of floating-point numbers that only the standard library has, for builds without it.
//!
//! With the feature `std`, the methods of the standard library are used, and this module is not compiled. The two agree
//! up to rounding.

/// Methods of `f64` that `core` lacks.
pub(crate) trait Float {
    fn exp(self) -> f64;
    fn ln(self) -> f64;
    fn log10(self) -> f64;
    fn powf(self, exponent: f64) -> f64;
    fn round(self) -> f64;
}

impl Float for f64 {
    fn exp(self) -> f64 {
        libm::exp(self)
    }

    fn ln(self) -> f64 {
        libm::log(self)
    }

    fn log10(self) -> f64 {
        libm::log10(self)
    }

    fn powf(self, exponent: f64) -> f64 {
        libm::pow(self, exponent)
    }

    fn round(self) -> f64 {
        libm::round(self)
    }
}
