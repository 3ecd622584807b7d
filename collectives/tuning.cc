#include "collectives/tuning.h"

#include "sim/error.h"

namespace rehearse {
namespace {

const Algorithm& FirstThatCan(CollectiveKind kind) {
  for (const Algorithm& row : Algorithms()) {
    if (row.kinds.Has(kind)) return row;
  }
  internal::FailCheck(__FILE__, __LINE__, "some algorithm does every kind");
}

}  // namespace

Choice ChooseAlgorithm(const ChoiceQuestion& question, Router& router) {
  const Collective& collective = question.collective;
  Choice choice;
  choice.algorithm = collective.algorithm == "auto" ? &FirstThatCan(collective.kind)
                                                    : &FindAlgorithm(collective.algorithm);
  CheckKind(*choice.algorithm, collective.kind);
  if (collective.protocol != "auto") choice.protocol = ParseProtocol(collective.protocol);
  choice.channels = question.channels;
  choice.step_inside = router.cluster().step_overhead();
  choice.step_across = router.cluster().step_overhead();
  return choice;
}

}  // namespace rehearse
