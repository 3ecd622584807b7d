// Where sweeps and searches keep their results, and which part of the points they simulate:
// --results, --resume, --shard.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scenarios/evaluating/results_file.h"
#include "scenarios/evaluating/shard.h"
#include "tools/command.h"

namespace rehearse {

struct ResultsOptions {
  std::string path;  // "" where nothing is kept
  bool resumes = false;
  Shard shard;
  std::unique_ptr<ResultsFile> file;

  // Opens the file, if one was asked for. Returns the stores in which finished points are kept.
  std::vector<PointStore*> Open();
};

void AddResultsOptions(CommandSyntax* syntax);
// `folder` is another place where points are kept, "" for none.
ResultsOptions ReadResultsOptions(const boost::program_options::variables_map& values,
                                  const std::string& folder);

// Adds --sort, by which points are sorted; its value is "" where it is not given.
void AddSortOption(CommandSyntax* syntax);
std::string SortOption(const boost::program_options::variables_map& values);

}  // namespace rehearse
