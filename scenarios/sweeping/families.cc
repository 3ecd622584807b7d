#include "scenarios/sweeping/families.h"

#include <algorithm>
#include <cmath>

namespace rehearse {
namespace {

// "h100" of the group "h100, nemo".
std::string DeviceOfGroup(const std::string& group) { return group.substr(0, group.find(',')); }

struct FamilyRow {
  std::string family;
  std::string device;
  double error = 0;
};

std::vector<FamilyRow> FamilyRows(const ValidationTable& table, const Validation& validation) {
  std::vector<FamilyRow> rows;
  for (size_t i = 0; i < table.rows.size(); ++i)
    rows.push_back({FamilyOf(table.rows[i].source), "", validation.rows[i].error});
  // The group of all comes last.
  for (size_t i = validation.groups.size(); i-- > 0;)
    for (const size_t row : validation.groups[i].rows)
      rows[row].device = DeviceOfGroup(validation.groups[i].name);
  return rows;
}

double BiasOfOthers(const std::vector<FamilyRow>& rows, const FamilyRow& own) {
  double sum = 0;
  size_t count = 0;
  double sum_of_all = 0;
  size_t all = 0;
  for (const FamilyRow& row : rows) {
    if (row.family == own.family) continue;
    sum_of_all += row.error;
    ++all;
    if (row.device != own.device) continue;
    sum += row.error;
    ++count;
  }
  if (count > 0) return sum / static_cast<double>(count);
  return all > 0 ? sum_of_all / static_cast<double>(all) : 0;
}

}  // namespace

std::string FamilyOf(const std::string& source) {
  std::string family = source.substr(0, source.find_first_of(",@"));
  // A repository is followed by the path of a file.
  if (const size_t slash = family.find('/'); slash != std::string::npos)
    family = family.substr(0, family.find(' ', slash));
  return family;
}

std::vector<ValidatedFamily> FamiliesOf(const ValidationTable& table,
                                        const Validation& validation) {
  const std::vector<FamilyRow> rows = FamilyRows(table, validation);
  std::vector<ValidatedFamily> families;
  for (const FamilyRow& row : rows) {
    const auto found =
        std::find_if(families.begin(), families.end(),
                     [&](const ValidatedFamily& family) { return family.name == row.family; });
    ValidatedFamily& family =
        found != families.end() ? *found : families.emplace_back(ValidatedFamily{row.family});
    const double left = (1 + row.error) / (1 + BiasOfOthers(rows, row)) - 1;
    ++family.rows;
    family.mean += std::abs(row.error);
    family.bias += row.error;
    family.left_mean += std::abs(left);
    family.left_bias += left;
  }
  for (ValidatedFamily& family : families) {
    for (double* sum : {&family.mean, &family.bias, &family.left_mean, &family.left_bias})
      *sum /= static_cast<double>(family.rows);
  }
  if (families.size() < 2) families.clear();
  return families;
}

}  // namespace rehearse
