//! All storage models side by side: each object goes into every one of them, and is asked for
//! from every one.

use super::chunks::Chunks;
use super::curve::{ChunkPoint, Point};
use super::error::SizesError;
use super::plan::{Member, Plan};
use super::source::Heeding;
use super::store::{Blobs, Segments, Store};
use super::{database, go_on};
use crate::cli::SizesOptions;
use crate::digest::Hashing;
use crate::host::Interrupt;
use std::path::Path;

/// All storage models, and what they hold so far.
pub(super) struct Models {
    pub(super) blobs: Blobs,
    pub(super) segments: Segments,
    chunks: Vec<Chunks>,
    pub(super) point: Point,
}

impl Models {
    pub(super) fn create(options: &SizesOptions, directory: &Path) -> Result<Self, SizesError> {
        let page_bytes = options.page_bytes;
        let chunks = options.averages.iter();
        let chunks = chunks.map(|average| Chunks::create(directory, *average, page_bytes));
        Ok(Self {
            blobs: Blobs::create(&directory.join("blobs"), page_bytes)?,
            segments: Segments::create(&directory.join("segments"), page_bytes)?,
            chunks: chunks.collect::<Result<_, _>>()?,
            point: Point::default(),
        })
    }

    fn stores(&mut self) -> impl Iterator<Item = &mut dyn Store> {
        let relational: [&mut dyn Store; 2] = [&mut self.blobs, &mut self.segments];
        let chunks = self
            .chunks
            .iter_mut()
            .map(|chunks| chunks as &mut dyn Store);
        relational.into_iter().chain(chunks)
    }

    /// Adds the closure of a root and says how large everything is now.
    pub(super) fn add(
        &mut self,
        plan: &Plan,
        root: u64,
        interrupt: &Interrupt,
    ) -> Result<Point, SizesError> {
        plan.at_once(|| {
            for member in plan.members(root)? {
                go_on(interrupt)?;
                self.add_member(plan, root, &member, interrupt)?;
            }
            self.stores().try_for_each(Store::commit)
        })?;
        self.weigh()?;
        Ok(self.point.clone())
    }

    fn add_member(
        &mut self,
        plan: &Plan,
        root: u64,
        member: &Member,
        interrupt: &Interrupt,
    ) -> Result<(), SizesError> {
        self.point.objects += 1;
        self.point.private += member.bytes;
        if !plan.is_new(member.id, root)? {
            return Ok(());
        }
        self.point.distinct_objects += 1;
        self.point.distinct_bytes += member.bytes;
        self.stores()
            .try_for_each(|store| store.put(member, interrupt))
    }

    fn weigh(&mut self) -> Result<(), SizesError> {
        self.point.blobs = database::bytes(&self.blobs.0)?;
        self.point.segments = database::bytes(&self.segments.0)?;
        let points = self.chunks.iter().map(|chunks| {
            Ok(ChunkPoint {
                chunks: chunks.chunks,
                distinct: chunks.distinct,
                pack: chunks.pack_bytes,
                index: chunks.index_bytes()?,
            })
        });
        self.point.chunks = points.collect::<Result<_, SizesError>>()?;
        Ok(())
    }

    /// Refuses a store that does not give an object back as it was.
    pub(super) fn prove(
        &mut self,
        plan: &Plan,
        id: u64,
        interrupt: &Interrupt,
    ) -> Result<(), SizesError> {
        let Some(wanted) = plan.stored_hash(id)? else {
            return Ok(());
        };
        for store in self.stores() {
            let mut found = Hashing::default();
            store.get(id, &mut Heeding::new(&mut found, interrupt))?;
            if found.hash() != wanted {
                return Err(SizesError::Altered {
                    path: plan.path(id)?,
                    store: store.name(),
                });
            }
        }
        Ok(())
    }
}
