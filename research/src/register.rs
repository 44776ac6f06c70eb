//! Registration of everything that the paper's rivals add to the product.

use temponet_train::register_method;

use crate::methods::{A2cSettings, HierarchicalSettings, PrioritySettings, SacSettings};

/// Makes the rivals' methods known to recipes. Call it once, before a recipe is read; more calls change nothing.
pub fn register() {
    register_method::<A2cSettings>();
    register_method::<SacSettings>();
    register_method::<PrioritySettings>();
    register_method::<HierarchicalSettings>();
}
