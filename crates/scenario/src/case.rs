//! One arm's memory and roles, read from the document after the arm's values were put in.

use crate::context::Context;
use crate::document::Table;
use crate::outline::Outline;
use crate::paths::Applied;
use crate::{memory, placement, read, regions, roles};
use plan::{Case, Nanos, Strategy};

/// Reads the arm's case. What is refused stands in `context`; the case is then a stand-in that lets reading go on.
pub(crate) fn read(context: &mut Context, root: &Table, outline: &Outline, applied: &Applied, window: Nanos) -> Case {
    let oversubscribe =
        root.get("oversubscribe").and_then(|node| read::boolean(context, node, "oversubscribe")).unwrap_or(false);
    let placement = placement::read(context, applied, outline);
    let mut fields = memory::fields(context, root);
    let mut locks = memory::locks(context, root);
    if placement.strategy != Strategy::Declared {
        fields.iter_mut().for_each(|field| field.at = None);
        locks.iter_mut().for_each(|lock| lock.at = None);
    }
    let regions = regions::read(context, root);
    let placeholders = &applied.placeholders;
    let declared = roles::Declared { fields: &fields, locks: &locks, regions: &regions, placeholders };
    let roles = roles::read(context, root, &declared, window);
    Case { fields, locks, regions, roles, placement, oversubscribe }
}
