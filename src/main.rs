//! Entry glue of the appliance: `rt` is the first instruction, `cowitness::app` the
//! first decision.
#![no_std]
#![no_main]
#![deny(unsafe_code)]

mod rt;
