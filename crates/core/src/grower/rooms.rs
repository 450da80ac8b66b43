//! Memory that searches use again and again, kept from tree to tree.

use std::sync::{Arc, Mutex, PoisonError};

use super::small::BinSums;
use crate::histogram::{LaneVector, ListedSums, N_PLACES, RunningSums, Side, SortKey};
use crate::split::{BestSplit, RowsAside};

/// What one search of a range of features works in.
#[derive(Default)]
pub(super) struct SearchRoom {
    pub sorted: SortedRoom,
    pub listed: ListedSums,
    pub best: BestSplit,
    /// For a sibling that is searched at the same time.
    pub sibling: BestSplit,
}

/// What a search by sorted rows works in.
pub(super) struct SortedRoom {
    /// By place.
    pub sides: [Side; N_PLACES],
    /// The lanes of rows by place.
    pub values: Vec<RunningSums>,
    /// The same, added up along a column: of both children, or of one node.
    pub sums: [Vec<RunningSums>; 2],
    pub aside: [RowsAside; 2],
    pub by_bins: BinSums,
}

impl Default for SortedRoom {
    fn default() -> SortedRoom {
        SortedRoom {
            sides: [Side::default(); N_PLACES],
            values: Vec::new(),
            sums: Default::default(),
            aside: Default::default(),
            by_bins: BinSums::default(),
        }
    }
}

/// Objects to borrow: as many as were ever in use at once.
pub(super) struct Rooms<T>(Mutex<Vec<T>>);

impl<T> Default for Rooms<T> {
    fn default() -> Rooms<T> {
        Rooms(Mutex::new(Vec::new()))
    }
}

impl<T: Default> Rooms<T> {
    /// An object that was given back, or a new one.
    pub fn take(&self) -> T {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub fn put(&self, room: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(room);
    }

    /// Lends an object to `f`. If `f` panics, the object is not used again.
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let mut room = self.take();
        let result = f(&mut room);
        self.put(room);
        result
    }
}

/// For the lanes of a node.
#[derive(Default)]
pub(super) struct LaneRooms<T> {
    /// Side by side.
    pub gathered: Rooms<Vec<T>>,
    /// Among those of all rows, zeros elsewhere. All is zero between uses.
    pub spread: Rooms<Vec<T>>,
}

/// What the searches of one grower work in.
#[derive(Default)]
pub(super) struct GrowRooms {
    /// Boxed: they are large, and are moved when they are lent.
    pub search: Rooms<Box<SearchRoom>>,
    pub narrow: LaneRooms<i32>,
    pub wide: LaneRooms<i64>,
    pub packed: Rooms<Vec<i64>>,
    pub vectors: Rooms<Vec<LaneVector>>,
    /// For the sorted rows of small nodes.
    pub keys: Arc<Rooms<Vec<SortKey>>>,
}
