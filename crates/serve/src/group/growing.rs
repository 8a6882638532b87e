//! How the group of an array may grow, and what keeps it from doing so.

use assay_array::ArrayPlan;

pub(crate) struct Growing {
    pub(crate) array: ArrayPlan,
    /// Pieces that move at the same time.
    pub(crate) depth: u32,
    /// Most members of a group of this array.
    pub(crate) members_most: u32,
    /// Whether pieces that the model has moved are not copied yet.
    pub(crate) is_behind: bool,
    /// Why a piece could not be copied, and when it is tried again.
    pub(crate) stalled: Option<(String, u64)>,
}

impl Growing {
    pub(crate) fn new(array: &ArrayPlan, depth: u32, members_most: u32) -> Self {
        Self { array: array.clone(), depth, members_most, is_behind: false, stalled: None }
    }
}
