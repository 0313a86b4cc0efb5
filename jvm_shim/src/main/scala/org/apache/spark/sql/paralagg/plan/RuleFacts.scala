package org.apache.spark.sql.paralagg.plan

import org.apache.spark.sql.catalyst.expressions.Expression

/**
 * What follows from a rule of the Plan for those who build its indexes ([[LoopBuilder]]) and those who write its code
 * ([[RuleBody]]). Both must come to the same answer, so each is given here once.
 */
private[paralagg] object RuleFacts {

  /** The probe's keys are the driver's whole key: its groups are ids of the driver's relation. */
  def isAligned(stratum: StratumSpec, rule: RuleSpec, at: Int): Boolean = rule.steps(at) match {
    case p: ProbeSpec if !p.recursive && rule.driver.index < 0 =>
      val index = stratum.staticIndex(p.index)
      val keys = stratum.relations(rule.driver.relation).keys.length
      !index.everywhere && p.keys.length == keys && keys > 0 && p.keys.indices.forall { j =>
        p.keys(j) match {
          case PlainVariable(name) => rule.driver.binds(j) == name
          case _ => false
        }
      }
    case _ => false
  }

  /** What a rule computes in the loop: not the head's key where its row is known already, nor keys of aligned probes. */
  def evaluated(stratum: StratumSpec, rule: RuleSpec): Seq[Expression] = {
    val keys = stratum.relations(rule.head).keys.length
    val emitted = if (rule.target.kind == "computed") rule.emit else rule.emit.drop(keys)
    emitted.toSeq ++ rule.steps.zipWithIndex.flatMap {
      case (FilterSpec(c), _) => Seq(c)
      case (p: ProbeSpec, at) => if (isAligned(stratum, rule, at)) Nil else p.keys.toSeq
    }
  }

  /** Payload columns of a static index that some rule reads. */
  def readPayload(stratum: StratumSpec, index: Int): Array[Boolean] = {
    val read = new Array[Boolean](stratum.staticIndex(index).payload.length)
    for (rule <- stratum.rules;
      names = evaluated(stratum, rule).flatMap(_.collect { case v: RuleVariable => v.name }).toSet;
      p <- rule.steps.collect { case p: ProbeSpec if !p.recursive && p.index == index => p })
      p.binds.indices.foreach(c => read(c) |= names(p.binds(c)))
    read
  }

  /** The head's row belongs to the task that owns the driver's row: its distribution columns are carried. */
  def staysLocal(stratum: StratumSpec, rule: RuleSpec): Boolean = {
    val head = stratum.relations(rule.head)
    val driver = stratum.relations(rule.driver.relation)
    rule.driver.index < 0 && head.distributeBy.length == driver.distributeBy.length &&
    head.distributeBy.zip(driver.distributeBy).forall { case (h, d) =>
      head.keys(h).dataType == driver.keys(d).dataType && (rule.emit(h) match {
        case PlainVariable(name) => rule.driver.binds(d) == name
        case _ => false
      })
    }
  }

  /** The probe whose rows stand for the targets of a resolved rule. */
  def resolvingProbe(rule: RuleSpec): ProbeSpec = rule.steps(rule.target.step).asInstanceOf[ProbeSpec]

  /** Where key `k` of a resolved rule's head stands in the blocks of the index that resolves it. */
  def targetColumn(stratum: StratumSpec, rule: RuleSpec, k: Int): Int =
    stratum.staticIndex(resolvingProbe(rule).index).keys.length + rule.target.payload(k)

  /** The rule by whose targets the rows of an index are sorted: the only one that is resolved through it. */
  def splittingRule(stratum: StratumSpec, index: Int, tasks: Int): Option[Int] = {
    val rules = stratum.rules.indices.filter { r =>
      val rule = stratum.rules(r)
      rule.target.kind == "resolved" && (rule.steps(rule.target.step) match {
        case p: ProbeSpec => !p.recursive && p.index == index
        case _ => false
      })
    }
    if (tasks > 1 && rules.length == 1) rules.headOption else None
  }
}
