// The lists of an explanation as rows for other programs: `rehearse explain --format csv`.
#pragma once

#include <string>
#include <vector>

#include "scenarios/explaining/explanation.h"
#include "sim/report/data_table.h"

namespace rehearse {

struct ExplanationList {
  const char* name;  // "path", as --table takes it
  const char* row;   // what a row is
  DataTable (*table)(const Explanation& explanation);
};

// The critical path comes first.
const std::vector<ExplanationList>& ExplanationLists();

// Finds a list by its name; throws Error, with "did you mean", for others.
const ExplanationList& FindExplanationList(const std::string& name);

}  // namespace rehearse
