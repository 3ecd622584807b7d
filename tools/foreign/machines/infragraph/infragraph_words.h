// What InfraGraph (Keysight's schema of infrastructures) has no field for, as words in a
// description: "rehearse: kind=nvlink efficiency=0.765". Our export writes them
// (tools/foreign/machines/infragraph/infragraph_export.h), our import reads them back
// (tools/foreign/machines/infragraph/import_infragraph.h), other readers skip them as text.
//
// Of an infrastructure: drawn=yes (nothing is to be merged), step_overhead, collective_overhead,
// channel_overhead, network_plugin. Of a component: kind (a vertex's), device, and node, which may
// be empty, where one device holds a whole cluster. Of a link: kind, efficiency, one_way=yes (from
// ep1 to ep2), cables (how many lie beside each other).
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace rehearse {

class InfraWords {
 public:
  InfraWords() = default;
  explicit InfraWords(std::string_view description);

  void Add(const std::string& key, const std::string& value) { words_[key] = value; }
  // As they stand in a description; "" for none.
  std::string Text() const;
  bool Has(std::string_view key) const { return words_.find(key) != words_.end(); }
  // "" where it is not there.
  std::string At(std::string_view key) const;
  bool IsEmpty() const { return words_.empty(); }
  const std::map<std::string, std::string, std::less<>>& all() const { return words_; }

 private:
  std::map<std::string, std::string, std::less<>> words_;
};

}  // namespace rehearse
