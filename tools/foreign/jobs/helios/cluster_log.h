// The tables of Slurm's jobs that SenseTime and Shanghai AI Laboratory published: Helios'
// cluster_log.csv and Acme's trace_seren.csv and trace_kalos.csv. A row is a job: how many GPUs it
// asked for, and when it was submitted, started and ended.
//
// Columns as in the traces' own descriptions (github.com/S-Lab-System-Group/HeliosData and
// github.com/InternLM/AcmeTrace, README.md): gpu_num, submit_time, start_time and end_time are
// used. "duration" is from start to end in Helios and Seren, but from submission in Kalos: it is
// only compared.
#pragma once

#include <string>

#include "tools/foreign/jobs/job_collector.h"

namespace rehearse {

// Each throws Error (file, line) for what is no such table.
ImportedJobs ReadHelios(const std::string& path, const JobWindow& window = {});
ImportedJobs ReadAcme(const std::string& path, const JobWindow& window = {});

}  // namespace rehearse
