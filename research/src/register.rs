//! Registration of everything that the paper's rivals add to the product.

use temponet_train::register_method;

use crate::methods::{A2cSettings, HierarchicalSettings, PrioritySettings, SacSettings};
use crate::networks;

/// Makes the rivals' methods and networks known to recipes and weights files. Call it once, before one is read; more calls change nothing.
pub fn register() {
    register_method::<A2cSettings>();
    register_method::<SacSettings>();
    register_method::<PrioritySettings>();
    register_method::<HierarchicalSettings>();
    networks::register();
}
