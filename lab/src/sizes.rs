//! `sizes`: how many bytes the closures of R programs take, as copies of their own, in one
//! relational store, and as content-defined chunks. The stores are real files that are built
//! root by root in a scratch directory, measured after each, asked for every object at the
//! end, and removed.

pub(crate) mod chunks;
mod curve;
mod database;
mod dynamic;
mod elf;
mod error;
mod image;
mod models;
mod patient;
mod plan;
mod source;
mod store;

pub use error::SizesError;

use crate::cli::SizesOptions;
use crate::digest::{Hash, Hashed};
use crate::failure::Failure;
use crate::host::Interrupt;
use crate::out;
use crate::progress::Progress;
use crate::scratch::Scratch;
use crate::text::printable;
use curve::{Manifest, Point, Run, Unknown};
use models::Models;
use patient::Patient;
use plan::Plan;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

/// How many directories of killed runs are said.
const LEFT_SAID: usize = 3;

/// Runs the command; rows go to standard output, the crossovers also to `say`.
///
/// # Errors
/// [`Failure::Open`], [`Failure::Signals`], [`Failure::Sizes`].
pub fn run(options: &SizesOptions, say: &dyn Fn(&str)) -> Result<(), Failure> {
    let interrupt = Interrupt::watch().map_err(Failure::Signals)?;
    curve::writable(options)?;
    let scratch = match &options.scratch {
        Some(directory) => Scratch::within(Path::new(directory))?,
        None => Scratch::new()?,
    };
    for left in scratch.left().into_iter().take(LEFT_SAID) {
        let left = printable(left.as_os_str().as_encoded_bytes());
        say(&format!(
            "{left} was left behind by a run that was killed; it can be removed"
        ));
    }
    let (plan, hash) = read(options, &scratch.path().join("plan"), &interrupt)?;
    let manifest = Manifest {
        hash,
        roots: plan.roots,
        paths: plan.objects,
    };
    let run = measure(options, &plan, scratch.path(), &interrupt, say);
    // What failed after a signal came, failed for it.
    let run = run.map_err(|error| go_on(&interrupt).err().unwrap_or(error))?;
    let run = Run { manifest, ..run };
    // Whoever takes the rows may take their time.
    drop((plan, scratch));
    interrupt.let_through();
    go_on(&interrupt)?;
    let mut out = BufWriter::new(out::stdout().map_err(Failure::Output)?);
    let crossovers = run.crossovers();
    run.write(&mut out, &crossovers)?;
    out.flush().map_err(Failure::Output)?;
    for crossover in crossovers {
        say(&crossover.words());
    }
    run.unknown.map_or(Ok(()), |Unknown { r, error, .. }| {
        let error = Box::new(error);
        Err(SizesError::Unknown { r, error }.into())
    })
}

/// The plan, and the hash of the manifest it was made from.
fn read(
    options: &SizesOptions,
    plan: &Path,
    interrupt: &Interrupt,
) -> Result<(Plan, Hash), Failure> {
    let patient = Patient::open(&options.manifest, interrupt)?;
    let mut manifest = BufReader::new(Hashed::new(patient));
    let plan = Plan::read(plan, &mut manifest);
    let Hashed { input, hash } = manifest.into_inner();
    let plan = plan.map_err(|error| input.failure.unwrap_or(error.into()))?;
    Ok((plan, hash.hash()))
}

fn measure<'o>(
    options: &'o SizesOptions,
    plan: &Plan,
    directory: &Path,
    interrupt: &Interrupt,
    say: &dyn Fn(&str),
) -> Result<Run<'o>, SizesError> {
    let mut unknown = look(plan, interrupt)?;
    let strip_level = plan.strip_level(say)?;
    let mut models = Models::create(options, directory)?;
    let points = stored(&mut models, plan, interrupt, &mut unknown)?;
    Ok(Run {
        options,
        manifest: Manifest::default(),
        strip_level,
        points,
        unknown,
    })
}

/// Reads every object once; from which root on there are no sizes.
fn look(plan: &Plan, interrupt: &Interrupt) -> Result<Option<Unknown>, SizesError> {
    let mut unknown = None;
    plan.at_once(|| {
        each(plan.objects, "reading objects", interrupt, &mut |id| {
            if let Some(error) = plan.look_at(id, interrupt)? {
                go_on(interrupt)?;
                note(&mut unknown, plan.root_of(id)?, error);
            }
            Ok(())
        })
    })?;
    Ok(unknown)
}

/// Stores closure after closure and asks for what was stored; a point for each root that is
/// known.
fn stored(
    models: &mut Models,
    plan: &Plan,
    interrupt: &Interrupt,
    unknown: &mut Option<Unknown>,
) -> Result<Vec<Point>, SizesError> {
    let mut points = Vec::new();
    each(plan.roots, "storing closures", interrupt, &mut |root| {
        // After an object that is gone the stores are not what a root would find.
        if unknown.as_ref().is_some_and(|unknown| unknown.r <= root) {
            return Ok(());
        }
        match models.add(plan, root, interrupt) {
            Ok(point) => points.push(point),
            Err(error) => note_object(unknown, root, error, interrupt)?,
        }
        Ok(())
    })?;
    let whole = points.len() as u64;
    each(plan.objects, "asking for objects", interrupt, &mut |id| {
        let root = match plan.stored_by(id)? {
            Some(root) if root <= whole => root,
            _ => return Ok(()),
        };
        match models.prove(plan, id, interrupt) {
            Ok(()) => Ok(()),
            Err(error) => note_object(unknown, root, error, interrupt),
        }
    })?;
    if let Some(unknown) = unknown {
        points.truncate(usize::try_from(unknown.r - 1).unwrap_or(usize::MAX));
    }
    Ok(points)
}

/// Keeps an error that is an object's, as of the root `r`; any other ends the run.
fn note_object(
    unknown: &mut Option<Unknown>,
    r: u64,
    error: SizesError,
    interrupt: &Interrupt,
) -> Result<(), SizesError> {
    go_on(interrupt)?;
    if !error.is_objects() {
        return Err(error);
    }
    note(unknown, r, error);
    Ok(())
}

/// Keeps the error that leaves the fewest roots known.
fn note(unknown: &mut Option<Unknown>, r: u64, error: SizesError) {
    if unknown.as_ref().is_none_or(|before| r < before.r) {
        *unknown = Some(Unknown::new(r, error));
    }
}

/// Does `work` with each number from 1 to `count`, until a signal comes.
fn each(
    count: u64,
    what: &str,
    interrupt: &Interrupt,
    work: &mut dyn FnMut(u64) -> Result<(), SizesError>,
) -> Result<(), SizesError> {
    let progress = Progress::new(usize::try_from(count).unwrap_or(usize::MAX));
    progress.starts(what);
    for number in 1..=count {
        go_on(interrupt)?;
        work(number)?;
        progress.ends();
    }
    Ok(())
}

fn go_on(interrupt: &Interrupt) -> Result<(), SizesError> {
    interrupt
        .signal()
        .map_or(Ok(()), |signal| Err(SizesError::Stopped(signal)))
}

#[cfg(test)]
mod tests {
    use super::error::Told;
    use super::*;
    use std::fs;

    /// Alters a store in the directory.
    type Damage<'d> = &'d dyn Fn(&Models, &Path);

    fn options() -> SizesOptions {
        SizesOptions {
            manifest: "-".into(),
            averages: vec![1024],
            page_bytes: 4096,
            label: String::new(),
            scratch: None,
        }
    }

    /// Stores that hold one object, and the plan they were made from.
    fn with_one_object(scratch: &Scratch) -> (Models, Plan) {
        let object = scratch.path().join("object");
        fs::write(
            &object,
            "some bytes, long enough to be looked for".repeat(100),
        )
        .unwrap();
        let manifest = format!("root\t{}\n", object.display());
        let plan = Plan::read(&scratch.path().join("plan"), &mut manifest.as_bytes()).unwrap();
        assert!(plan.look_at(1, &Interrupt::default()).unwrap().is_none());
        let mut models = Models::create(&options(), scratch.path()).unwrap();
        let point = models.add(&plan, 1, &Interrupt::default()).unwrap();
        assert_eq!((point.objects, point.private), (1, 4000));
        (models, plan)
    }

    fn altered(models: &mut Models, plan: &Plan) -> Option<String> {
        match models.prove(plan, 1, &Interrupt::default()) {
            Ok(()) => None,
            Err(SizesError::Altered { store, .. }) => Some(store),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_store_that_gives_other_bytes_back_is_found_out() {
        let damages: [(&str, Damage<'_>); 3] = [
            ("the store of blobs", &|models, _| {
                let sql = "UPDATE object SET data = zeroblob(length(data))";
                models.blobs.0.execute(sql, []).unwrap();
            }),
            ("the store of segments", &|models, _| {
                models
                    .segments
                    .0
                    .execute("DELETE FROM segment", [])
                    .unwrap();
            }),
            ("chunks of 1024 bytes", &|_, directory| {
                let pack = directory.join("pack-1024");
                let mut bytes = fs::read(&pack).unwrap();
                bytes[1] ^= 1;
                fs::write(&pack, bytes).unwrap();
            }),
        ];
        for (store, damage) in damages {
            let scratch = Scratch::new().unwrap();
            let (mut models, plan) = with_one_object(&scratch);
            assert_eq!(altered(&mut models, &plan), None);
            damage(&models, scratch.path());
            assert_eq!(altered(&mut models, &plan).as_deref(), Some(store));
        }
    }

    #[test]
    fn a_file_is_as_large_as_its_store_says() {
        let scratch = Scratch::new().unwrap();
        let (models, _plan) = with_one_object(&scratch);
        let (point, chunks) = (models.point.clone(), models.point.chunks[0]);
        drop(models);
        let bytes = |name| fs::metadata(scratch.path().join(name)).unwrap().len();
        assert_eq!(
            (point.blobs, point.segments),
            (bytes("blobs"), bytes("segments"))
        );
        assert_eq!(
            (chunks.pack, chunks.index),
            (bytes("pack-1024"), bytes("index-1024"))
        );
    }

    /// Changes the file at a path.
    type Meddle<'m> = &'m dyn Fn(&Path);

    /// Three roots with an object each, of which `meddle` does something to the second once all
    /// have been read: the first root's point, and why there are no others.
    fn meddled(meddle: impl Fn(&Path)) -> (Vec<Point>, Unknown) {
        let scratch = Scratch::new().unwrap();
        let mut manifest = String::new();
        for name in ["a", "b", "c"] {
            let object = scratch.path().join(name);
            fs::write(&object, name.repeat(5000)).unwrap();
            manifest += &format!("{name}\t{}\n", object.display());
        }
        let plan = Plan::read(&scratch.path().join("plan"), &mut manifest.as_bytes()).unwrap();
        let interrupt = Interrupt::default();
        let mut unknown = look(&plan, &interrupt).unwrap();
        assert!(unknown.is_none());
        meddle(&scratch.path().join("b"));
        let mut models = Models::create(&options(), scratch.path()).unwrap();
        let points = stored(&mut models, &plan, &interrupt, &mut unknown).unwrap();
        (points, unknown.unwrap())
    }

    #[test]
    fn what_goes_while_it_is_stored_leaves_the_roots_before_it() {
        let altered = Told::Reason("altered");
        let cases: [(Meddle<'_>, Told); 4] = [
            (
                &|path| fs::remove_file(path).unwrap(),
                Told::Errno("ENOENT".to_owned()),
            ),
            (
                &|path| fs::write(path, "b").unwrap(),
                Told::Reason("not-storable"),
            ),
            (
                &|path| fs::write(path, "x".repeat(5000)).unwrap(),
                altered.clone(),
            ),
            (&|path| fs::write(path, "b".repeat(6000)).unwrap(), altered),
        ];
        for (meddle, status) in cases {
            let (points, unknown) = meddled(meddle);
            assert_eq!((points.len(), points[0].private), (1, 5000), "{status:?}");
            assert_eq!(unknown.r, 2, "{status:?}");
            assert_eq!(unknown.error.told(), status);
        }
    }
}
