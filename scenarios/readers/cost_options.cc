#include "scenarios/readers/cost_options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/base/json_document.h"

namespace rehearse {
namespace {

constexpr double kMostMoney = 1e15;
constexpr size_t kLongestCurrency = 8;
constexpr double kMostWatts = 1e9;

// "30000USD" -> 30000 and "USD"; nothing if it is not zero or more with something behind it.
std::optional<std::pair<double, std::string>> AmountOf(std::string_view text) {
  double amount = 0;
  const auto [stop, fault] = std::from_chars(text.data(), text.data() + text.size(), amount);
  if (fault != std::errc() || !(amount >= 0) || amount > kMostMoney) return std::nullopt;
  std::string_view unit = text.substr(static_cast<size_t>(stop - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  return std::pair(amount, std::string(unit));
}

bool IsCurrency(std::string_view text) {
  return !text.empty() && text.size() <= kLongestCurrency &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalpha(c) != 0; });
}

void ReadMoneyWith(const JsonReader& reader, std::string_view end, const char* expected,
                   Money* money) {
  auto found = AmountOf(reader.String());
  const bool ends = found && found->second.size() > end.size() && found->second.ends_with(end);
  if (ends) found->second.resize(found->second.size() - end.size());
  if (!ends || !IsCurrency(found->second)) reader.Expected(expected);
  *money = {found->first, found->second};
}
void ReadMoney(const JsonReader& reader, Money* money) {
  ReadMoneyWith(reader, "", "a price of zero or more with its currency such as \"30000USD\"",
                money);
}
void ReadHourly(const JsonReader& reader, Money* money) {
  ReadMoneyWith(reader, "/h", "a price of an hour such as \"2.5USD/h\"", money);
}
void ReadEnergyPrice(const JsonReader& reader, Money* money) {
  ReadMoneyWith(reader, "/kWh", "a price of energy such as \"0.08USD/kWh\"", money);
}
void WriteMoney(const Money& money, nlohmann::ordered_json* to) {
  *to = fmt::format("{}{}", money.amount, money.currency);
}
void WriteHourly(const Money& money, nlohmann::ordered_json* to) {
  *to = fmt::format("{}{}/h", money.amount, money.currency);
}
void WriteEnergyPrice(const Money& money, nlohmann::ordered_json* to) {
  *to = fmt::format("{}{}/kWh", money.amount, money.currency);
}

void ReadWatts(const JsonReader& reader, double* watts) {
  const auto found = AmountOf(reader.String());
  const double factor = !found ? 0 : found->second == "W" ? 1 : found->second == "kW" ? 1000 : 0;
  if (factor == 0 || found->first * factor > kMostWatts)
    reader.Expected("a power of zero or more such as \"700W\" or \"2.5kW\"");
  *watts = found->first * factor;
}
void WriteWatts(const double& watts, nlohmann::ordered_json* to) {
  *to = fmt::format("{}W", watts);
}
FieldShape APower() { return ReadBy<double>(AText("power such as 700W"), ReadWatts, WriteWatts); }

void ReadCarbon(const JsonReader& reader, double* kilograms) {
  const auto found = AmountOf(reader.String());
  if (!found || (found->second != "kg/kWh" && found->second != "g/kWh"))
    reader.Expected("carbon dioxide of energy such as \"0.4kg/kWh\"");
  *kilograms = found->second == "g/kWh" ? found->first / 1000 : found->first;
}
void WriteCarbon(const double& kilograms, nlohmann::ordered_json* to) {
  *to = fmt::format("{}kg/kWh", kilograms);
}

Field<CostOptions> PriceRow(const char* name, std::optional<Money> CostOptions::*member,
                            const char* about, const char* example) {
  return {name,
          member,
          ReadBy<Money>(AText("price such as 30000USD"), ReadMoney, WriteMoney),
          Optional("nothing"),
          about,
          example};
}

// One currency, and years where something is bought.
void CheckCosts(const JsonReader& reader, CostOptions* costs) {
  const std::vector<std::pair<const char*, const std::optional<Money>*>> prices = {
      {"gpu", &costs->gpu},           {"host", &costs->host},
      {"nic", &costs->nic},           {"switch", &costs->switches},
      {"cable", &costs->cable},       {"optics", &costs->optics},
      {"storage", &costs->storage},   {"other", &costs->other},
      {"gpu_hour", &costs->gpu_hour}, {"electricity", &costs->electricity}};
  bool buys = false;
  for (const auto& [key, price] : prices) {
    if (!*price) continue;
    if (costs->currency.empty()) costs->currency = (*price)->currency;
    if ((*price)->currency != costs->currency)
      reader.At(key).Expected(fmt::format("{}, as other prices are", costs->currency));
    buys = buys || (price != &costs->gpu_hour && price != &costs->electricity);
  }
  if (costs->currency.empty()) reader.Fail("expected at least one price");
  if (costs->gpu_hour)
    for (const char* key : {"gpu", "host", "nic", "switch", "cable", "optics"})
      if (reader.Has(key))
        reader.At(key).Fail("is bought, but \"gpu_hour\" pays for machines; expected one of them");
  if (buys && !costs->years) reader.Fail("prices are written off; expected \"years\"");
  if (costs->years && !(*costs->years > Seconds(0))) reader.At("years").Expected("more than zero");
}

}  // namespace

const Fields<CostOptions>& CostFields() {
  using Costs = CostOptions;
  constexpr int64_t kMostGpus = int64_t{1} << 24;
  static const Fields<Costs> fields(
      "costs",
      "Prices and powers of what the cluster is made of; a step, and a \"run\", then say what they "
      "cost.",
      {SchemaForEditors(),
       PriceRow("gpu", &Costs::gpu, "of one GPU", "\"30000USD\""),
       PriceRow("host", &Costs::host, "of all else in one machine, without NICs", "\"70000USD\""),
       PriceRow("nic", &Costs::nic, "of one NIC", "\"1500USD\""),
       PriceRow("switch", &Costs::switches, "of one switch of the network", "\"40000USD\""),
       PriceRow("cable", &Costs::cable, "of one cable of the network", "\"200USD\""),
       PriceRow("optics", &Costs::optics, "of one end of a cable", "\"900USD\""),
       PriceRow("storage", &Costs::storage, "of all storage", "\"20000000USD\""),
       PriceRow("other", &Costs::other, "of all else that is bought once", "\"5000000USD\""),
       {"gpu_hour", &Costs::gpu_hour,
        ReadBy<Money>(AText("price of an hour such as 2.5USD/h"), ReadHourly, WriteHourly),
        Optional("machines are bought"), "of one GPU with its share of hosts and network, rented",
        "\"2.5USD/h\""},
       {"years", &Costs::years, ALongTime(), Optional("nothing is bought"),
        "over which prices are written off, evenly", "\"4 years\""},
       {"electricity", &Costs::electricity,
        ReadBy<Money>(AText("price of energy such as 0.08USD/kWh"), ReadEnergyPrice,
                      WriteEnergyPrice),
        Optional("nothing"), "of a kWh", "\"0.08USD/kWh\""},
       {"pue", &Costs::pue, ANumber(1, 10), Usual(),
        "power of the building over that of its machines", "1.1"},
       {"carbon", &Costs::carbon,
        ReadBy<double>(AText("carbon dioxide such as 0.4kg/kWh"), ReadCarbon, WriteCarbon),
        Optional("not counted"), "carbon dioxide of a kWh", "\"0.4kg/kWh\""},
       {"gpu_power", &Costs::gpu_power, APower(), Optional("the board's data sheet"),
        "of a GPU that computes or communicates", "\"700W\""},
       {"gpu_idle_power", &Costs::gpu_idle_power, APower(), Optional("a fifth of that"),
        "of a GPU that waits", "\"140W\""},
       {"host_power", &Costs::host_power, APower(), Optional("0 W"),
        "of all in a machine but the GPUs", "\"4kW\""},
       {"switch_power", &Costs::switch_power, APower(), Optional("0 W"), "of one switch",
        "\"1.7kW\""},
       {"optics_power", &Costs::optics_power, APower(), Optional("0 W"), "of one end of a cable",
        "\"12W\""},
       {"gpus_bought", &Costs::gpus_bought, AWhole(1, kMostGpus),
        Optional("all of the cluster, whether ranks are on them or not"),
        "how many GPUs are paid for, spares and unused ones of a rack too", "1152"},
       {"sources", &Costs::sources, Named(AText(), "key"), Optional("not told"),
        "where each figure is from, and whether it is a guess", R"({"gpu": "a list price"})"}},
      CheckCosts);
  return fields;
}

CostOptions ReadCosts(const JsonReader& reader) {
  if (!reader.IsString()) {
    CostOptions costs = CostFields().Read(reader);
    costs.place = reader.place();
    return costs;
  }
  JsonDocument document = reader.Open(reader.Text());
  reader.Change(&document);
  const JsonReader root = document.Root();
  CostOptions costs = CostFields().Read(root);
  costs.place = root.place();
  return costs;
}

JsonShape CostsShape() {
  return Either({AText("path of a file, from this one"), ObjectOf(ShapeIn<CostFields>)});
}

}  // namespace rehearse
