// What commands declare about their options, from which completion and the man page are made.
#include "tools/command.h"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/base/error.h"

namespace rehearse {
namespace command_test {

TEST(CommandTest, EveryOptionAndArgumentSaysWhatItTakes) {
  for (const Command& command : Commands()) {
    const CommandSyntax syntax = command.syntax();
    std::set<std::string> known(syntax.positional.begin(), syntax.positional.end());
    for (const auto& option : syntax.options.options()) {
      EXPECT_NO_THROW(TakenBy(syntax, *option)) << command.name << " --" << option->long_name();
      known.insert(option->long_name());
      const Taken taken = TakenBy(syntax, *option);
      EXPECT_EQ(taken.kind == Taken::Kind::kName, !taken.names.empty());
    }
    for (const std::string& argument : syntax.positional)
      EXPECT_NO_THROW(TakenBy(syntax, argument)) << command.name << " " << argument;
    for (const auto& [name, taken] : syntax.takes)
      EXPECT_TRUE(known.count(name) > 0) << command.name << " has no " << name;
  }
}

TEST(CommandTest, TheNameOfAValueSaysWhatItIs) {
  CommandSyntax syntax;
  namespace po = boost::program_options;
  syntax.options.add_options()("a", po::value<std::string>()->value_name("x|y")->default_value("y"),
                               "")("b", "")("c", po::value<std::string>()->value_name("DIR"), "")(
      "d", po::value<std::string>()->value_name("THING"), "");
  const auto taken = [&](const char* name) {
    return TakenBy(syntax, syntax.options.find(name, false));
  };
  EXPECT_EQ(taken("a").names, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(taken("b").kind, Taken::Kind::kNothing);
  EXPECT_EQ(taken("c").kind, Taken::Kind::kFolder);
  EXPECT_THROW(taken("d"), InternalError);
}

TEST(CommandTest, ANameThatAnOptionDoesNotTakeIsRefused) {
  CommandSyntax syntax = RunSyntax();
  boost::program_options::variables_map values;
  EXPECT_THROW(ParseCommandLine(syntax, {"x.json", "--fidelity", "fluidd"}, &values), Error);
}

}  // namespace command_test
}  // namespace rehearse
