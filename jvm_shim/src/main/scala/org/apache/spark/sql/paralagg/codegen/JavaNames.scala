package org.apache.spark.sql.paralagg.codegen

import org.apache.spark.sql.paralagg.{codegen, load, state}

/** Full names of the classes that generated code uses, since that code is in a package of Catalyst. */
private[codegen] object JavaNames {
  val Accumulator: String = classOf[state.Accumulator].getName
  val Combiner: String = classOf[codegen.Combiner].getName
  val Dictionary: String = classOf[load.Dictionary].getName
  val Kernel: String = classOf[codegen.Kernel].getName
  val LongKeyMap: String = classOf[state.LongKeyMap].getName
  val LoopState: String = classOf[state.LoopState].getName
  val RelationIndex: String = classOf[state.RelationIndex].getName
  val RelationPart: String = classOf[state.RelationPart].getName
  val RowAddress: String = load.JavaName.of(state.RowAddress)
  val StaticIndex: String = classOf[state.StaticIndex].getName
  val StringWord: String = load.JavaName.of(load.StringWord)
  val Sums: String = load.JavaName.of(codegen.Sums)
  val TupleKeyMap: String = classOf[state.TupleKeyMap].getName
}
