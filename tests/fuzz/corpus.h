// What fuzz targets begin with: shipped files, machines and schedules from our own writers, and the
// words of the tables that `rehearse schema` prints.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/schedule/schedule.h"
#include "topology/cluster/cluster.h"

namespace rehearse {

// Texts of shipped files of at most kLongestInput bytes, "scenarios/studies", ".json".
std::vector<std::string> ShippedTexts(const std::string& folder, const std::string& extension);
// The value under the key of each shipped scenario that has it, as JSON.
std::vector<std::string> ShippedValues(const std::string& key);

// The words of a document of `rehearse schema`, in quotes where a file has them in quotes: keys,
// choices and examples; and values that readers treat specially.
std::vector<std::string> SchemaWords(const std::string& document);
// From now on they are these, by the document's name: for inputs that stay the same when keys are
// added.
void FreezeSchemaWords(std::map<std::string, std::vector<std::string>> words);

// Shipped scenarios of a few ranks: several strategies, stages, experts, images.
std::vector<std::string> SmallScenarios();
// What is planned from them.
std::vector<Schedule> SmallSchedules();

// What edits and the like are applied to: two DGX A100.
const Cluster& TwoMachines();

// Whether a number above `most` follows one of the words, with signs and blanks between: the cost
// of large machines and models is no finding.
bool HasLarger(std::string_view text, const std::vector<std::string_view>& words, uint64_t most);
// Words that buy devices, switches or links.
bool NamesALargeMachine(std::string_view text);

// A folder in memory, one per process, gone with it; with a slash at the end.
const std::string& FuzzFolder();
// Replaces a file there; returns its path.
std::string WriteFuzzFile(const std::string& name, std::string_view content);

}  // namespace rehearse
